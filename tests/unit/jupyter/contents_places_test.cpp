// SPDX-License-Identifier: Apache-2.0
//
// Which workspaces the paths of /api/contents mean, and which they do not.
#include "tests/unit/jupyter/rest_fixture.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

namespace cellkeep::jupyter::test {
namespace {

void put(const RestFixture& rest, const std::string& path, const std::string& text) {
    const std::filesystem::path file = rest.backend.directory() + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
}

TEST_CASE("the root lists the sessions that the principal may see", "[contents]") {
    RestFixture rest;
    const auto mine = rest.add_kernel(kSomeUuid, "ada");
    const auto other = rest.add_kernel(kOtherUuid, "bob");
    rest.principal = {"ada", http::Role::kAgent};
    for (const char* root : {"/api/contents", "/api/contents/"}) {
        const auto answer = rest.ask("GET", root);
        CHECK(answer.status == 200);
        CHECK(answer.json["type"] == "directory");
        CHECK(answer.json["path"] == "");
        CHECK(answer.json["format"] == "json");
        REQUIRE(answer.json["content"].size() == 1);
        CHECK(answer.json["content"][0]["name"] == mine->id());
        CHECK(answer.json["content"][0]["content"].is_null());
    }
    CHECK(rest.ask("GET", "/api/contents?content=0").json["content"].is_null());
}

TEST_CASE("a session of another principal does not exist", "[contents]") {
    RestFixture rest;
    const auto theirs = rest.add_kernel(kOtherUuid, "bob");
    put(rest, "a.txt", "secret");
    const std::string file = "/api/contents/" + theirs->id() + "/a.txt";
    CHECK(rest.ask("GET", file).json["content"] == "secret");  // of the administrator
    rest.principal = {"ada", http::Role::kAgent};
    CHECK(rest.ask("GET", file).status == 404);
    CHECK(rest.ask("GET", "/api/contents/" + theirs->id()).status == 404);
    CHECK(rest.ask("GET", std::string("/api/contents/") + kOtherUuid + "/a.txt").status == 404);
    CHECK(rest.ask("GET", file + "/checkpoints").status == 404);
    CHECK(rest.ask("PUT", file, R"({"type":"file","format":"text","content":""})").status == 404);
    CHECK(rest.ask("POST", file + "/checkpoints").status == 404);
    CHECK(rest.ask("DELETE", file).status == 404);

    const auto mine = rest.add_kernel(kSomeUuid, "ada");
    const std::string own = "/api/contents/" + mine->id();
    const std::string copy = R"({"copy_from":")" + theirs->id() + R"(/a.txt"})";
    CHECK(rest.ask("POST", own, copy).status == 404);
    const std::string move = R"({"path":")" + theirs->id() + R"(/b.txt"})";
    CHECK(rest.ask("PATCH", own + "/a.txt", move).status == 404);
}

TEST_CASE("a session is known by both of its ids", "[contents]") {
    RestFixture rest;
    const auto session = rest.add_kernel();
    put(rest, "d/a.txt", "1");
    for (const std::string& name : {session->id(), std::string(kSomeUuid)}) {
        const auto answer = rest.ask("GET", "/api/contents/" + name + "/d/a.txt");
        CHECK(answer.status == 200);
        CHECK(answer.json["path"] == name + "/d/a.txt");
        CHECK(rest.ask("GET", "/api/contents/" + name + "/").json["content"][0]["name"] == "d");
    }
}

TEST_CASE("a path that leads elsewhere is refused", "[contents]") {
    RestFixture rest;
    const auto session = rest.add_kernel();
    const std::string root = "/api/contents/" + session->id();
    put(rest, "a.txt", "1");
    std::filesystem::create_symlink("/etc", rest.backend.directory() + "/out");
    std::filesystem::create_symlink("a.txt", rest.backend.directory() + "/link");
    CHECK(rest.ask("GET", root + "/a.txt").status == 200);
    for (const char* path : {"/../a.txt", "/%2e%2e/a.txt", "/..%2fa.txt", "/a%00.txt", "//a.txt"}) {
        INFO(path);
        CHECK(rest.ask("GET", root + path).status == 400);
    }
    for (const char* path :
         {"/out", "/out/passwd", "/link", "/none", "/a.txt/b", "/.hidden", "/d/.git/config"}) {
        INFO(path);
        CHECK(rest.ask("GET", root + path).status >= 400);
        CHECK(rest.ask("GET", root + path).status <= 404);
        CHECK(rest.ask("DELETE", root + path).status == 404);
    }
    CHECK(rest.ask("GET", "/api/contents/ses_none/a.txt").status == 404);
    CHECK(rest.ask("GET", "/api/contents/%2e%2e").status == 400);
    const auto listed = rest.ask("GET", root).json["content"];
    REQUIRE(listed.size() == 1);  // no links
    CHECK(listed[0]["name"] == "a.txt");
    for (const char* path : {"../x", "/etc/passwd", "a/../../x", ""}) {
        INFO(path);
        const std::string body = nlohmann::json({{"path", session->id() + "/" + path}}).dump();
        CHECK(rest.ask("PATCH", root + "/a.txt", body).status == 400);
    }
    CHECK(rest.ask("PATCH", root + "/a.txt", R"({"path":"/etc/passwd"})").status == 404);
    CHECK(std::filesystem::exists(rest.backend.directory() + "/a.txt"));
}

TEST_CASE("the directories of sessions are not files", "[contents]") {
    RestFixture rest;
    const auto session = rest.add_kernel();
    const std::string root = "/api/contents/" + session->id();
    CHECK(rest.ask("DELETE", root).status == 400);
    CHECK(rest.ask("PATCH", root, R"({"path":"other"})").status == 404);
    CHECK(rest.ask("PATCH", root, R"({"path":")" + session->id() + R"("})").status == 400);
    CHECK(rest.ask("PUT", root, R"({"type":"file","format":"text","content":""})").status == 400);
    CHECK(rest.ask("PUT", root, R"({"type":"directory"})").status == 200);
    CHECK(rest.ask("PUT", "/api/contents/new", R"({"type":"directory"})").status == 404);
    CHECK(rest.ask("PUT", "/api/contents", R"({"type":"directory"})").status == 400);
    CHECK(rest.ask("POST", "/api/contents", R"({"type":"notebook"})").status == 400);
    CHECK(rest.ask("POST", "/api/contents").status == 400);
    CHECK(rest.ask("DELETE", "/api/contents").status == 400);
    CHECK(rest.ask("GET", root + "/checkpoints").status == 400);
    CHECK(rest.backend.removed == 0);
}

TEST_CASE("a directory that is made at the root is a session", "[contents]") {
    RestFixture rest;
    const auto answer = rest.ask("POST", "/api/contents", R"({"type":"directory"})");
    CHECK(answer.status == 201);
    CHECK(answer.json["type"] == "directory");
    REQUIRE(rest.backend.sessions.size() == 1);
    const std::string id = rest.backend.sessions[0]->id();
    CHECK(answer.json["path"] == id);
    CHECK(answer.headers.get("Location") == "/api/contents/" + id);
    CHECK(rest.backend.asked.at(0).owner == "admin");
    rest.backend.failure = Error(ErrorCode::kLimitExceeded, "full");
    CHECK(rest.ask("POST", "/api/contents", R"({"type":"directory"})").status == 403);
}

TEST_CASE("an observer reads and changes nothing", "[contents]") {
    RestFixture rest;
    const auto session = rest.add_kernel(kSomeUuid, "eve");
    put(rest, "a.txt", "1");
    const std::string file = "/api/contents/" + session->id() + "/a.txt";
    const std::vector<std::pair<std::string, std::string>> eve = {
        {"Authorization", "token " + kEveToken}};
    CHECK(rest.ask("GET", file, "", eve).status == 200);
    CHECK(rest.ask("PUT", file, R"({"type":"file"})", eve).status == 403);
    CHECK(rest.ask("POST", file + "/checkpoints", "", eve).status == 403);
    CHECK(rest.ask("PATCH", file, "{}", eve).status == 403);
    CHECK(rest.ask("DELETE", file, "", eve).status == 403);
    CHECK(rest.ask("GET", file, "", {{"Authorization", ""}}).status == 401);
}

TEST_CASE("looking at files is no activity of a session, changing them is", "[contents]") {
    RestFixture rest;
    const auto session = rest.add_kernel();
    const std::string root = "/api/contents/" + session->id();
    put(rest, "a.txt", "1");
    CHECK(rest.ask("GET", root).status == 200);
    CHECK(rest.ask("GET", root + "/a.txt").status == 200);
    CHECK(session->touched == 0);
    CHECK(rest.ask("POST", root, R"({"type":"file"})").status == 201);
    CHECK(session->touched == 1);
}

TEST_CASE("the files of a session that has ended are gone", "[contents]") {
    RestFixture rest;
    const auto session = rest.add_kernel();
    put(rest, "a.txt", "1");
    const std::string root = "/api/contents/" + session->id();
    session->failure = Error(ErrorCode::kConflict, "the session has ended");
    CHECK(rest.ask("GET", root + "/a.txt").status == 404);
    CHECK(rest.ask("GET", root).status == 404);
    CHECK(
        rest.ask("PUT", root + "/b", R"({"type":"file","format":"text","content":""})").status ==
        404);
}

TEST_CASE("a document in a session's directory has that session's kernel", "[contents][sessions]") {
    RestFixture rest;
    const auto session = rest.add_kernel();
    const std::string path = session->id() + "/d/x.ipynb";
    const std::string body =
        nlohmann::json({{"path", path}, {"type", "notebook"}, {"kernel", {{"name", "python3"}}}})
            .dump();
    const auto made = rest.ask("POST", "/api/sessions", body);
    CHECK(made.status == 201);
    CHECK(made.json["kernel"]["id"] == kSomeUuid);
    CHECK(rest.backend.asked.empty());
    const std::string document = "/api/sessions/" + made.json["id"].get<std::string>();
    const auto same = rest.ask("PATCH", document, R"({"kernel":{"name":"python3"}})");
    CHECK(same.json["kernel"]["id"] == kSomeUuid);
    CHECK(rest.ask("PATCH", document, R"({"kernel":{"name":"sql"}})").status == 400);
    // The document goes and the files stay.
    CHECK(rest.ask("DELETE", document).status == 204);
    CHECK(rest.ask("GET", document).status == 404);
    CHECK(rest.backend.find(kSomeUuid) != nullptr);
    CHECK(rest.backend.removed == 0);
}

TEST_CASE(
    "a document beneath another principal's session has a kernel of its own",
    "[contents][sessions]") {
    RestFixture rest;
    const auto theirs = rest.add_kernel(kOtherUuid, "bob");
    rest.principal = {"ada", http::Role::kAgent};
    const std::string body =
        nlohmann::json({{"path", theirs->id() + "/x.ipynb"}, {"type", "notebook"}}).dump();
    const auto made = rest.ask("POST", "/api/sessions", body);
    CHECK(made.status == 201);
    CHECK(made.json["kernel"]["id"] != kOtherUuid);
    REQUIRE(rest.backend.asked.size() == 1);
    CHECK(rest.backend.asked[0].owner == "ada");
}

}  // namespace
}  // namespace cellkeep::jupyter::test
