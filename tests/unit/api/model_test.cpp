// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/answers/model.hpp"

#include "kernel-manager/api/answers/execution_model.hpp"
#include "kernel-manager/api/openapi.hpp"
#include "kernel-manager/execution/execution_recorder.hpp"
#include "kernel-manager/limits/limit_reason.hpp"
#include "protocol/json.hpp"

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::api {
namespace {

nlohmann::json parsed(const protocol::TextPieces& text) {
    return protocol::parse_json(text.join(), "answer").value();
}

TEST_CASE("a session shows its limits, isolation and death", "[agent][model]") {
    session::SessionInfo info;
    info.id = "ses_1";
    info.state = session::KernelState::kDead;
    info.death = session::Death{session::Death::Kind::kSignal, 11};
    info.isolation.controls = {
        {"seccomp", sandbox::ControlState::kApplied, "filter", "", ""},
        {"landlock", sandbox::ControlState::kAbsent, "", "why", "fix"}};
    const auto model = to_json(info);
    CHECK(model["id"] == "ses_1");
    CHECK(model["state"] == "dead");
    CHECK(model["death"]["reason"] == "signal(11)");
    CHECK(model["limits"]["wall_ms"] == 30'000);
    CHECK(model["limits"]["executions"].is_null());
    CHECK(model["isolation"]["complete"] == false);
    CHECK(model["isolation"]["controls"][1]["fix"] == "fix");
    CHECK_FALSE(model["isolation"]["controls"][0].contains("fix"));
    CHECK(model["connection_file"].is_null());
    CHECK(model["network"]["mode"] == "none");
    CHECK(model["limits"]["total_cpu_ms"].is_null());
    CHECK(model["used"]["total_output_bytes"] == 0);
    CHECK(model["circuit_breaker"]["state"] == "closed");
    CHECK(model["circuit_breaker"]["retry_after_ms"].is_null());
}

TEST_CASE("an execution shows everything, outputs only if asked", "[agent][model]") {
    session::ExecutionResult result;
    result.status = session::ExecutionStatus::kTimeout;
    result.state_kept = false;
    result.error = session::ExecutionError{};
    result.error->kind = "wall_timeout";
    result.truncated["stdout"] = {10, 20, "", ""};
    result.metrics.wall = std::chrono::microseconds(1500);
    result.stdout_text = "a\"b\n";
    result.result = protocol::RawJson(R"({"text/plain":"2"})");
    result.outputs.emplace_back(session::StreamOutput{"stdout", R"(a\"b\n)"});
    result.outputs.emplace_back(
        session::DisplayOutput{std::make_shared<session::MimeBundle>(session::MimeBundle{
            protocol::RawJson(R"({"text/html":"<b>"})"), protocol::RawJson("{}")})});
    boost::asio::io_context io;
    session::Execution execution(io, {});
    execution.finish(std::move(result));
    const auto model = parsed(finished_text(execution, Outputs::kOmit));
    CHECK(model["status"] == "timeout");
    CHECK(model["state"] == "lost");
    CHECK_FALSE(model.contains("restored"));
    CHECK(model["error"]["kind"] == "wall_timeout");
    CHECK(model["error"]["line"].is_null());
    CHECK(model["exit_code"].is_null());
    CHECK(model["execution_count"].is_null());
    CHECK(model["truncated"]["stdout"]["total"] == 20);
    CHECK(model["truncated"]["stdout"]["saved_to"].is_null());
    CHECK(model["metrics"]["wall_ms"] == 1.5);
    CHECK_FALSE(model.contains("outputs"));
    CHECK(model["stdout"] == "a\"b\n");
    CHECK(model["stderr"] == "");
    CHECK(model["result"] == nlohmann::json{{"text/plain", "2"}});
    const nlohmann::json html{{"text/html", "<b>"}};
    CHECK(
        model["displays"] ==
        nlohmann::json::array({{{"data", html}, {"metadata", nlohmann::json::object()}}}));
    const auto whole = parsed(finished_text(execution, Outputs::kInclude));
    REQUIRE(whole["outputs"].size() == 2);
    CHECK(whole["outputs"][0]["text"] == "a\"b\n");
    CHECK(whole["outputs"][1]["output_type"] == "display_data");
    CHECK(whole["outputs"][1]["data"] == html);
}

TEST_CASE("an answer from the cache has the words of its own request", "[agent][model]") {
    boost::asio::io_context io;
    session::Execution execution(io, {});
    session::ExecutionResult result;
    result.reasoning = "the first run's";
    execution.finish(std::move(result));
    const Annotations mine{"mine", {{"k", 1}}};
    const auto run = parsed(finished_text(execution, Outputs::kOmit, Origin::kRun, mine));
    CHECK(run["reasoning"] == "the first run's");
    CHECK(run["cached"] == false);
    const auto cached = parsed(finished_text(execution, Outputs::kOmit, Origin::kCache, mine));
    CHECK(cached["reasoning"] == "mine");
    CHECK(cached["metadata"] == nlohmann::json{{"k", 1}});
    CHECK(cached["cached"] == true);
    CHECK(run["result"].is_null());
}

TEST_CASE("a large display is in the answer without a copy", "[agent][model]") {
    boost::asio::io_context io;
    session::Execution execution(io, {});
    session::ExecutionResult result;
    const protocol::RawJson large(R"({"text/plain":")" + std::string(1 << 20, 'x') + R"("})");
    result.outputs.emplace_back(session::DisplayOutput{std::make_shared<session::MimeBundle>(
        session::MimeBundle{large, protocol::RawJson("{}")})});
    execution.finish(std::move(result));
    const auto text = finished_text(execution, Outputs::kInclude);
    std::size_t shared = 0;
    for (const std::string_view piece : text.views()) {
        shared += piece.data() == large.text().data() ? 1U : 0U;
    }
    CHECK(shared == 2);  // in displays and in outputs
    CHECK(text.size() > 2U << 20U);
    CHECK(parsed(text)["displays"][0]["data"] == parsed(text)["outputs"][0]["data"]);
}

TEST_CASE("an entry shows what kind of thing it is", "[agent][model]") {
    CHECK(to_json(sandbox::Entry{"a", sandbox::EntryKind::kFile, 3, {}})["kind"] == "file");
    CHECK(
        to_json(sandbox::Entry{"a", sandbox::EntryKind::kDirectory, 0, {}})["kind"] == "directory");
    CHECK(to_json(sandbox::Entry{"a", sandbox::EntryKind::kOther, 0, {}})["kind"] == "other");
}

TEST_CASE("every kind of error is in the document, and no other", "[agent][model]") {
    const auto document = nlohmann::json::parse(openapi_document());
    const auto listed =
        document["components"]["schemas"]["ExecutionError"]["properties"]["kind"]["enum"]
            .get<std::vector<std::string>>();
    const auto& known = error_kinds();
    CHECK(std::vector<std::string>(known.begin(), known.end()) == listed);
    const auto is_known = [](std::string_view kind) {
        CAPTURE(kind);
        CHECK(error_kind(std::string(kind)) == kind);
    };
    for (int i = 0; i <= static_cast<int>(session::kLastLimitReason); ++i) {
        is_known(to_string(static_cast<session::LimitReason>(i)));
    }
    for (int i = 0; i <= static_cast<int>(session::kLastCut); ++i) {
        session::ExecutionRecorder recorder("exe_1", "ses_1", "", 1000);
        is_known(recorder.finish(static_cast<session::Cut>(i)).error->kind);
    }
    session::ExecutionRecorder dead("exe_1", "ses_1", "", 1000);
    is_known(dead.finish_dead({session::Death::Kind::kSignal, 11}).error->kind);
    CHECK(error_kind("a kernel's own word") == "runtime");
    CHECK(error_kind("") == "runtime");
}

TEST_CASE("an execution says from where its interpreter goes on", "[agent][model]") {
    session::ExecutionRecorder recorder("exe_2", "ses_1", "", 1000);
    session::ExecutionResult result = recorder.finish_dead({session::Death::Kind::kSignal, 11});
    set_restored(result, {"ckp_1", {"exe_1", "exe_2"}});
    boost::asio::io_context io;
    session::Execution execution(io, {});
    execution.finish(std::move(result));
    const auto model = parsed(finished_text(execution, Outputs::kOmit));
    CHECK(model["state"] == "restored");
    CHECK(model["restored"]["checkpoint"] == "ckp_1");
    CHECK(model["restored"]["undone"] == nlohmann::json::array({"exe_1", "exe_2"}));
    CHECK_THAT(model["error"]["hint"].get<std::string>(), Catch::Contains("ckp_1"));
}

}  // namespace
}  // namespace cellkeep::api
