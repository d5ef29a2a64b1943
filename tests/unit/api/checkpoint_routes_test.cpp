// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/answers/checkpoint_answers.hpp"
#include "kernel-manager/api/bodies/checkpoint_body.hpp"
#include "kernel-manager/checkpoint/files/blob_store.hpp"
#include "kernel-manager/checkpoint/files/manifest.hpp"
#include "protocol/limits.hpp"
#include "tests/unit/api/agent_api.hpp"

#include <catch2/catch.hpp>

#include <cerrno>
#include <string>

namespace cellkeep::api::test {
namespace {

using checkpoint::Gone;
using checkpoint::NotForkable;
using nlohmann::json;

constexpr const char* kCheckpoints = "/v1/sessions/ses_1/checkpoints";
constexpr const char* kRollback = "/v1/sessions/ses_1/rollback";

FieldErrors errors_of(const json& body, bool rollback) {
    FieldErrors errors;
    if (rollback) {
        (void)parse_rollback_order(body, errors);
    } else {
        (void)parse_checkpoint_order(body, errors);
    }
    return errors;
}

TEST_CASE("a checkpoint has a label or none, and says what becomes of threads", "[agent]") {
    FieldErrors errors;
    CHECK_FALSE(parse_checkpoint_order(json::object(), errors).label.has_value());
    const std::string longest(limits::kCheckpointLabelBytesMax, 'x');
    const auto order = parse_checkpoint_order({{"label", longest}, {"on_threads", "drop"}}, errors);
    CHECK(order.label == longest);
    CHECK(order.on_threads == checkpoint::OnThreads::kDrop);
    CHECK(errors.empty());
}

TEST_CASE("wrong bodies are refused field by field", "[agent]") {
    const auto [body, rollback, pointer] = GENERATE(table<json, bool, std::string>({
        {{{"label", std::string(limits::kCheckpointLabelBytesMax + 1, 'x')}}, false, "/label"},
        {{{"label", ""}}, false, "/label"},
        {{{"label", 1}}, false, "/label"},
        {{{"on_threads", "keep"}}, false, "/on_threads"},
        {{{"on_threads", ""}}, false, "/on_threads"},
        {{{"on_threads", 1}}, false, "/on_threads"},
        {{{"other", 1}}, false, "/other"},
        {json::array(), false, ""},
        {json::object(), true, "/checkpoint"},
        {{{"checkpoint", 1}}, true, "/checkpoint"},
        {{{"checkpoint", std::string(65, 'x')}}, true, "/checkpoint"},
        {{{"checkpoint", "ckp_1"}, {"discard", 1}}, true, "/discard"},
        {{{"checkpoint", "ckp_1"}, {"reseed", "yes"}}, true, "/reseed"},
        {{{"checkpoint", "ckp_1"}, {"label", "x"}}, true, "/label"},
        {json("ckp_1"), true, ""},
    }));
    INFO(body.dump());
    const FieldErrors errors = errors_of(body, rollback);
    REQUIRE_FALSE(errors.empty());
    CHECK(errors.front().pointer == pointer);
}

TEST_CASE("a session that cannot be copied says why", "[agent]") {
    Api api;
    REQUIRE(api.ask("POST", "/v1/sessions", "{}").status == 201);
    const auto refused = api.ask("POST", kCheckpoints, "{}");
    CHECK(refused.status == 409);
    CHECK(refused.json["type"] == "/problems/not-forkable");
    CHECK(refused.json["reason"] == "language");
    CHECK(api.ask("POST", kCheckpoints, R"({"label":""})").status == 422);
    const auto list = api.ask("GET", kCheckpoints);
    CHECK(list.status == 200);
    CHECK(list.json["checkpoints"] == json::array());
    CHECK(list.json["limits"]["checkpoints"] == limits::kCheckpointsMax);
    CHECK(list.json["limits"]["file_bytes"] == checkpoint::kKeptFileBytesMax);
    CHECK(list.json["limits"]["stored_file_bytes"] == checkpoint::kStoredBytesMax);
    CHECK(list.json["stored_file_bytes"] == 0);
}

TEST_CASE("a checkpoint that is not there cannot be gone back to", "[agent]") {
    Api api;
    REQUIRE(api.ask("POST", "/v1/sessions", "{}").status == 201);
    for (const auto& answer :
         {api.ask("POST", kRollback, R"({"checkpoint":"ckp_1"})"),
          api.ask("DELETE", std::string(kCheckpoints) + "/ckp_1")}) {
        CHECK(answer.status == 404);
        CHECK(answer.json["type"] == "/problems/unknown-checkpoint");
    }
    CHECK(api.ask("POST", kRollback, "").status == 400);
    CHECK(api.ask("POST", kRollback, "{}").status == 422);
    CHECK(api.ask("POST", "/v1/sessions/ses_9/checkpoints", "{}").status == 404);
}

TEST_CASE("problems of checkpoints name their reasons", "[agent]") {
    CHECK(no_checkpoint("ckp_1", std::nullopt).kind == "unknown-checkpoint");
    for (const Gone why : {Gone::kDeleted, Gone::kEvicted, Gone::kDied}) {
        const http::Problem gone = no_checkpoint("ckp_1", why);
        CHECK(gone.status == 410);
        CHECK(gone.extensions["reason"] == to_string(why));
    }
    const http::Problem threads = not_forkable({NotForkable::Why::kThreads, 3, {}});
    CHECK(threads.extensions == json{{"reason", "threads"}, {"count", 3}});
    CHECK_THAT(threads.detail, Catch::Contains("3 threads"));
    CHECK_THAT(threads.detail, Catch::Contains("\"carry\"") && Catch::Contains("\"drop\""));
    const http::Problem stay = not_forkable({NotForkable::Why::kThreads, 3, {}, false});
    CHECK(stay.extensions == threads.extensions);
    CHECK_THAT(stay.detail, !Catch::Contains("\"carry\"") && Catch::Contains("\"drop\""));
    const http::Problem full = not_forkable({NotForkable::Why::kSystem, EAGAIN});
    CHECK_THAT(full.detail, Catch::Contains("Resource temporarily unavailable"));
}

TEST_CASE("an answer lists only what is lost", "[agent]") {
    checkpoint::CheckpointMade made;
    made.checkpoint.id = "ckp_1";
    made.checkpoint.lost = {.threads = 0, .children = 2, .sockets = 0};
    const json answer = to_json(made);
    CHECK(answer["lost"] == json::array({{{"what", "processes"}, {"count", 2}}}));
    CHECK(answer["evicted"] == json::array());
    CHECK(answer["unchanged"] == false);
    CHECK(answer["private_bytes"].is_null());
    CHECK(answer["file_bytes"] == 0);
    CHECK(
        answer["files"] ==
        json{{"count", 0}, {"complete", true}, {"unkept_count", 0}, {"unkept", json::array()}});
    CHECK(answer["parent"].is_null());
    checkpoint::RolledBack back;
    back.left_as = "ckp_2";
    CHECK(to_json(back)["left_as"] == "ckp_2");
    CHECK(to_json(back)["lost"] == json::array());
    back.files_failed = 2;
    back.failures.push_back({"a", "why"});
    CHECK(to_json(back)["files"]["failed_count"] == 2);
    CHECK(to_json(back)["files"]["failed"] == json::array({{{"path", "a"}, {"reason", "why"}}}));
}

TEST_CASE("a new session says when it makes checkpoints by itself", "[agent]") {
    Api api;
    const auto made = api.ask("POST", "/v1/sessions", R"({"checkpoints":{"auto":"costly"}})");
    CHECK(made.status == 201);
    for (const char* wrong :
         {R"({"auto":"always"})",
          R"({"auto":1})",
          R"({"auto":""})",
          R"({"when":"each"})",
          R"("each")",
          "[]"}) {
        INFO(wrong);
        const std::string body = R"({"checkpoints":)" + std::string(wrong) + "}";
        CHECK(api.ask("POST", "/v1/sessions", body).status == 422);
    }
    CHECK(
        api.ask("POST", "/v1/executions", R"({"code":"1","checkpoints":{"auto":"each"}})").status ==
        422);
    FieldErrors errors;
    const json each = {{"checkpoints", {{"auto", "each"}}}};
    ObjectReader reader(each, "", errors);
    CHECK(read_checkpoint_choices(reader, errors).automatic == checkpoint::AutoCheckpoints::kEach);
    CHECK(errors.empty());
}

}  // namespace
}  // namespace cellkeep::api::test
