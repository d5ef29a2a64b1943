// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/answers/merge_answers.hpp"
#include "kernel-manager/api/bodies/merge_body.hpp"
#include "tests/unit/api/agent_api.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <string>
#include <vector>

namespace cellkeep::api::test {
namespace {

using checkpoint::Change;
using checkpoint::MergeAnswer;
using nlohmann::json;
using Outcome = MergeAnswer::Outcome;

constexpr const char* kDiff = "/v1/sessions/ses_1/diff";
constexpr const char* kMerge = "/v1/sessions/ses_1/merge";

/// Two sessions of the same owner; the second is a branch of the first.
struct Family {
    explicit Family(const std::string& owner = "admin") {
        session::SessionOptions options;
        options.owner = owner;
        parent = api.backend.add(options);
        branch = api.backend.add(options);
        branch->edit().branch = session::BranchInfo{"ses_1", "ckp_1", std::nullopt};
        checkpoint::SessionFiles files;
        files.held = std::make_shared<const checkpoint::HeldFiles>(
            nullptr, nullptr, std::make_shared<const checkpoint::Manifest>());
        files.base = std::make_shared<checkpoint::MergeBase>();
        branch->files = files;
    }
    Api api;
    std::shared_ptr<FakeSession> parent;
    std::shared_ptr<FakeSession> branch;
};

checkpoint::FileChange changed(const std::string& path) {
    using Facts = checkpoint::FileChange::Facts;
    return {
        path,
        Change::kMode,
        Facts{sandbox::EntryKind::kFile, 0644, 3},
        Facts{sandbox::EntryKind::kFile, 04755, 5}};
}

TEST_CASE("a comparison is asked for with ids, a page and a place", "[agent]") {
    Api api;
    const auto session = api.backend.add();
    for (const char* query :
         {"",
          "?against=",
          "?checkpoint=ckp_1",
          "?against=ckp_1&checkpoint=",
          "?against=ckp_1&limit=0",
          "?against=ckp_1&limit=1001",
          "?against=ckp_1&limit=-1",
          "?against=ckp_1&limit=",
          "?against=ckp_1&limit=1x",
          "?against=ckp_1&after=",
          "?against=ckp_1&after=6",
          "?against=ckp_1&after=6G",
          "?against=ckp_1&after=6A",
          "?against=ckp_1&after=data.csv"}) {
        INFO(query);
        CHECK(api.ask("GET", std::string(kDiff) + query).status == 400);
    }
    CHECK(session->compared.empty());
    const auto unknown = api.ask("GET", std::string(kDiff) + "?against=ckp_1");
    CHECK(unknown.status == 404);
    CHECK(unknown.json["type"] == "/problems/unknown-checkpoint");
    checkpoint::FileChanges changes;
    changes.list = {changed("b\xff/x")};
    changes.more = true;
    session->changes = changes;
    const auto page =
        api.ask("GET", std::string(kDiff) + "?against=ckp_1&checkpoint=ckp_2&limit=1000");
    REQUIRE(page.status == 200);
    CHECK(page.json["against"] == "ckp_1");
    CHECK(page.json["checkpoint"] == "ckp_2");
    CHECK(page.json["next"] == "62ff2f78");
    const json& file = page.json["files"][0];
    CHECK(file["change"] == "mode");
    CHECK(file["kind"] == "file");
    CHECK(file["bytes"] == 5);
    CHECK(file["bytes_before"] == 3);
    CHECK(file["mode"] == "4755");
    CHECK(file["mode_before"] == "0644");
    REQUIRE(session->compared.back().later == "ckp_2");
    CHECK(session->compared.back().page.limit == checkpoint::kFileChangesMax);
    // The place is the path, whatever bytes it has.
    CHECK(api.ask("GET", std::string(kDiff) + "?against=ckp_1&after=62ff2f78").status == 200);
    CHECK(session->compared.back().page.after == "b\xff/x");
    session->changes->more = false;
    CHECK(api.ask("GET", std::string(kDiff) + "?against=ckp_1").json["next"].is_null());
}

TEST_CASE("a file that came or went has no permissions on the other side", "[agent]") {
    checkpoint::FileChanges changes;
    changes.list = {changed("new"), changed("old")};
    changes.list[0].before.reset();
    changes.list[1].after.reset();
    changes.list[1].before->kind = sandbox::EntryKind::kLink;
    const json files = to_json(changes)["files"];
    CHECK(files[0]["mode_before"].is_null());
    CHECK(files[0]["bytes_before"] == 0);
    CHECK(files[1]["mode"].is_null());
    CHECK(files[1]["bytes"] == 0);
    CHECK(files[1]["kind"] == "link");
}

TEST_CASE("sessions are compared, and a branch with what it was made with", "[agent]") {
    Family family("alice");
    Api& api = family.api;
    family.parent->changes.emplace();
    family.branch->changes.emplace();
    api.principal = {"alice", http::Role::kAgent};
    CHECK(api.ask("GET", std::string(kDiff) + "?against=ses_2").status == 200);
    CHECK(family.parent->compared.back().other == family.branch->files->held);
    CHECK(api.ask("GET", "/v1/sessions/ses_2/diff?against=ckp_1").status == 200);
    CHECK(family.branch->compared.back().begun);
    CHECK(api.ask("GET", "/v1/sessions/ses_2/diff?against=ckp_2").status == 200);
    CHECK_FALSE(family.branch->compared.back().begun);
    const auto unknown = api.ask("GET", std::string(kDiff) + "?against=ses_9");
    CHECK(unknown.status == 404);
    CHECK(unknown.json["type"] == "/problems/unknown-session");
    // A session that keeps no files; one that is in the middle of something; another's.
    CHECK(api.ask("GET", "/v1/sessions/ses_2/diff?against=ses_1").status == 503);
    family.parent->failure = Error(ErrorCode::kConflict, "busy");
    CHECK(api.ask("GET", std::string(kDiff) + "?against=ses_2").status == 409);
    session::SessionOptions bobs;
    bobs.owner = "bob";
    api.backend.add(bobs);
    const auto hidden = api.ask("GET", std::string(kDiff) + "?against=ses_3");
    CHECK(hidden.status == 404);
    CHECK(hidden.json["type"] == unknown.json["type"]);
}

TEST_CASE("a merge takes a branch, some of its paths, and force", "[agent]") {
    Family family;
    const std::string most(255, 'x');
    const auto done = family.api.ask(
        "POST",
        kMerge,
        json{{"from", "ses_2"}, {"paths", {"a", "d/" + most}}, {"force", true}}.dump());
    REQUIRE(done.status == 200);
    CHECK(done.json["from"] == "ses_2");
    REQUIRE(family.parent->merges.size() == 1);
    CHECK(family.parent->merges[0].paths == std::vector<std::string>{"a", "d/" + most});
    CHECK(family.parent->merges[0].force);
    REQUIRE(family.api.ask("POST", kMerge, R"({"from":"ses_2"})").status == 200);
    CHECK(family.parent->merges[1].paths.empty());
    CHECK_FALSE(family.parent->merges[1].force);
    json many = {{"from", "ses_2"}, {"paths", json::array()}};
    for (std::size_t i = 0; i < checkpoint::kMergePathsMax; ++i) {
        many["paths"].push_back("f" + std::to_string(i));
    }
    CHECK(family.api.ask("POST", kMerge, many.dump()).status == 200);
    many["paths"].push_back("more");
    CHECK(family.api.ask("POST", kMerge, many.dump()).status == 422);
}

TEST_CASE("wrong orders for a merge are refused field by field", "[agent]") {
    const auto [body, pointer] = GENERATE(table<json, std::string>({
        {json::object(), "/from"},
        {json::array(), ""},
        {{{"from", 1}}, "/from"},
        {{{"from", std::string(65, 'x')}}, "/from"},
        {{{"from", "ses_2"}, {"paths", "a"}}, "/paths"},
        {{{"from", "ses_2"}, {"paths", json::array()}}, "/paths"},
        {{{"from", "ses_2"}, {"paths", json::array({1})}}, "/paths/0"},
        {{{"from", "ses_2"}, {"paths", {"a", ""}}}, "/paths/1"},
        {{{"from", "ses_2"}, {"paths", {"/a", "b"}}}, "/paths/0"},
        {{{"from", "ses_2"}, {"paths", {"b", "../a"}}}, "/paths/1"},
        {{{"from", "ses_2"}, {"force", 1}}, "/force"},
        {{{"from", "ses_2"}, {"checkpoint", "ckp_1"}}, "/checkpoint"},
    }));
    INFO(body.dump());
    FieldErrors errors;
    (void)parse_merge(body, errors);
    REQUIRE_FALSE(errors.empty());
    CHECK(errors.front().pointer == pointer);
}

TEST_CASE("only a branch that can be seen is merged, and only into its parent", "[agent]") {
    Family family("alice");
    Api& api = family.api;
    api.principal = {"alice", http::Role::kAgent};
    const auto ask = [&](const std::string& target, const std::string& from) {
        return api.ask("POST", "/v1/sessions/" + target + "/merge", json{{"from", from}}.dump());
    };
    CHECK(ask("ses_1", "ses_2").status == 200);
    CHECK(ask("ses_1", "ses_9").status == 404);
    const auto reversed = ask("ses_2", "ses_1");
    CHECK(reversed.status == 409);
    CHECK(reversed.json["type"] == "/problems/not-a-branch");
    CHECK(ask("ses_1", "ses_1").status == 409);
    session::SessionOptions bobs;
    bobs.owner = "bob";
    const auto other = api.backend.add(bobs);
    other->edit().branch = session::BranchInfo{"ses_1", "ckp_1", std::nullopt};
    CHECK(ask("ses_1", "ses_3").status == 404);
    CHECK(ask("ses_3", "ses_2").status == 404);
    family.branch->files->base = nullptr;
    CHECK(ask("ses_1", "ses_2").status == 503);
    family.branch->files.reset();
    CHECK(ask("ses_1", "ses_2").status == 503);
    CHECK(family.parent->merges.size() == 1);
}

TEST_CASE("an answer of a merge says what was done, and what was not", "[agent]") {
    Family family;
    MergeAnswer& answer = family.parent->merged;
    answer.changes = {changed("a")};
    answer.change_count = 2000;
    answer.conflicts = {
        {"c", Change::kModified, Change::kDeleted}, {"d", std::nullopt, Change::kCreated}};
    answer.conflict_count = 2;
    answer.skipped = {{"big", checkpoint::Unkept::kFileBytes}};
    answer.skipped_count = 1;
    answer.unmatched = {"none"};
    const auto ask = [&] { return family.api.ask("POST", kMerge, R"({"from":"ses_2"})"); };
    const json conflicts = json::array(
        {{{"path", "c"}, {"here", "modified"}, {"branch", "deleted"}},
         {{"path", "d"}, {"here", nullptr}, {"branch", "created"}}});
    const auto done = ask();
    CHECK(done.status == 200);
    CHECK(done.json["files"][0]["path"] == "a");
    CHECK(done.json["file_count"] == 2000);
    CHECK(done.json["overruled"] == conflicts);
    CHECK(done.json["skipped"] == json::array({{{"path", "big"}, {"reason", "file_bytes"}}}));
    CHECK(done.json["unmatched"] == json::array({"none"}));
    answer.outcome = Outcome::kConflicts;
    const auto refused = ask();
    CHECK(refused.status == 409);
    CHECK(refused.json["type"] == "/problems/merge-conflict");
    CHECK(refused.json["conflicts"] == conflicts);
    CHECK(refused.json["conflict_count"] == 2);
    answer.outcome = Outcome::kIncomplete;
    CHECK(ask().json["type"] == "/problems/too-many-entries");
    answer.outcome = Outcome::kUndone;
    answer.failure = {"a", "no room"};
    const auto undone = ask();
    CHECK(undone.json["type"] == "/problems/merge-failed");
    CHECK(undone.json["undone"] == true);
    CHECK(undone.json["failed"] == json{{"path", "a"}, {"reason", "no room"}});
    answer.outcome = Outcome::kPartly;
    answer.left = {{"b", "gone"}};
    answer.left_count = 1;
    const auto partly = ask();
    CHECK(partly.status == 409);
    CHECK(partly.json["undone"] == false);
    CHECK(partly.json["left"] == json::array({{{"path", "b"}, {"reason", "gone"}}}));
    family.parent->failure = Error(ErrorCode::kConflict, "busy");
    CHECK(ask().json["type"] == "/problems/conflict");
}

}  // namespace
}  // namespace cellkeep::api::test
