// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/api/agent_api.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

namespace cellkeep::api::test {
namespace {

const std::string kFiles = "/v1/sessions/ses_1/files";

TEST_CASE("a file is put, listed, read and removed", "[agent][files]") {
    Api api;
    api.backend.add();
    const auto put = api.ask("PUT", kFiles + "/d/a.csv", "hello");
    CHECK(put.status == 201);
    CHECK(put.json["bytes"] == 5);
    CHECK(api.ask("PUT", kFiles + "/d/a.csv", "hello!").status == 200);
    const auto list = api.ask("GET", kFiles + "?path=d").json;
    CHECK(list["entries"][0]["path"] == "d/a.csv");
    CHECK(api.ask("GET", kFiles).json["entries"][0]["kind"] == "directory");
    const auto get = api.ask("GET", kFiles + "/d/a.csv");
    CHECK(get.status == 200);
    CHECK(get.text == "hello!");
    CHECK(get.headers.get("Content-Type") == "text/csv");
    CHECK(get.headers.get("Content-Disposition") == "attachment");
    CHECK(api.ask("DELETE", kFiles + "/d/a.csv").status == 204);
    CHECK(api.ask("GET", kFiles + "/d/a.csv").status == 404);
    CHECK(api.ask("DELETE", kFiles + "/d/a.csv").status == 404);
}

TEST_CASE("a range of a file is a 206, of the version the client knows", "[agent][files]") {
    Api api;
    api.backend.add();
    (void)api.ask("PUT", kFiles + "/a", "0123456789");
    const auto part = api.ask("GET", kFiles + "/a", "", {{"Range", "bytes=2-4"}});
    CHECK(part.status == 206);
    CHECK(part.text == "234");
    CHECK(part.headers.get("Content-Range") == "bytes 2-4/10");
    const std::string tag(part.headers.get("ETag"));
    CHECK(
        api.ask("GET", kFiles + "/a", "", {{"Range", "bytes=2-4"}, {"If-Range", tag}}).status ==
        206);
    CHECK(
        api.ask("GET", kFiles + "/a", "", {{"Range", "bytes=2-4"}, {"If-Range", "\"x\""}}).status ==
        200);
    const auto beyond = api.ask("GET", kFiles + "/a", "", {{"Range", "bytes=10-"}});
    CHECK(beyond.status == 416);
    CHECK(beyond.headers.get("Content-Range") == "bytes */10");
}

TEST_CASE("a path that leaves the workspace is malformed", "[agent][files]") {
    Api api;
    api.backend.add();
    for (const char* path :
         {"/..",
          "/../a",
          "/a/../../b",
          "/%2e%2e/a",
          "/a%2f..%2fb",
          "/.",
          "/a%00b",
          "/a//b",
          "/a//",
          "/%2fetc%2fpasswd"}) {
        CAPTURE(path);
        CHECK(api.ask("GET", kFiles + path).status == 400);
        CHECK(api.ask("PUT", kFiles + path, "x").status == 400);
        CHECK(api.ask("DELETE", kFiles + path).status == 400);
    }
    CHECK(api.ask("GET", kFiles + "?path=..").status == 400);
    CHECK(api.ask("GET", kFiles + "?path=/etc").status == 400);
}

TEST_CASE("what is not a plain file is a conflict", "[agent][files]") {
    Api api;
    api.backend.add();
    (void)api.ask("PUT", kFiles + "/d/a", "x");
    std::filesystem::create_symlink("/etc/passwd", api.backend.directory() + "/link");
    CHECK(api.ask("GET", kFiles + "/d").status == 409);
    CHECK(api.ask("GET", kFiles + "/link").status == 409);
    CHECK(api.ask("GET", kFiles + "?path=missing").status == 404);
}

TEST_CASE("files of a session that has ended are a conflict", "[agent][files]") {
    Api api;
    const auto session = api.backend.add();
    session->failure = Error(ErrorCode::kConflict, "closed");
    CHECK(api.ask("GET", kFiles).status == 409);
    CHECK(api.ask("GET", kFiles + "/a").status == 409);
    CHECK(api.ask("PUT", kFiles + "/a", "x").status == 409);
    CHECK(api.ask("DELETE", kFiles + "/a").status == 409);
}

TEST_CASE("a path that ends with a slash is a directory to be made", "[agent][files]") {
    Api api;
    api.backend.add();
    const auto made = api.ask("PUT", kFiles + "/d/e/");
    CHECK(made.status == 201);
    CHECK(made.json["kind"] == "directory");
    CHECK(made.json["path"] == "d/e");
    CHECK(api.ask("PUT", kFiles + "/d/e/").status == 200);
    CHECK(api.ask("PUT", kFiles + "/f/", "text").status == 400);
    CHECK(api.ask("PUT", kFiles + "/../").status == 400);
    (void)api.ask("PUT", kFiles + "/file", "x");
    CHECK(api.ask("PUT", kFiles + "/file/").status == 409);
    CHECK(api.ask("GET", kFiles + "/d/").status == 400);
    CHECK(api.ask("DELETE", kFiles + "/d/").status == 400);
}

TEST_CASE("a directory that is not empty is deleted only with recursive=true", "[agent][files]") {
    Api api;
    api.backend.add();
    (void)api.ask("PUT", kFiles + "/d/e/f", "x");
    const auto refused = api.ask("DELETE", kFiles + "/d");
    CHECK(refused.status == 409);
    CHECK(refused.json["type"] == "/problems/not-empty");
    CHECK(api.ask("DELETE", kFiles + "/d?recursive=yes").status == 400);
    CHECK(api.ask("DELETE", kFiles + "/d?recursive=true").status == 204);
    CHECK(api.ask("GET", kFiles + "?path=d").status == 404);
    CHECK(api.ask("DELETE", kFiles + "/d?recursive=true").status == 404);
}

TEST_CASE("a condition that does not hold changes nothing", "[agent][files]") {
    Api api;
    api.backend.add();
    const auto first = api.ask("PUT", kFiles + "/a", "1", {{"If-None-Match", "*"}});
    CHECK(first.status == 201);
    const std::string tag(first.headers.get("ETag"));
    CHECK_FALSE(tag.empty());
    CHECK(api.ask("PUT", kFiles + "/a", "2", {{"If-None-Match", "*"}}).status == 412);
    CHECK(api.ask("PUT", kFiles + "/a", "2", {{"If-Match", "\"other\""}}).status == 412);
    CHECK(api.ask("PUT", kFiles + "/a", "2", {{"If-Match", "W/" + tag}}).status == 412);
    CHECK(api.ask("PUT", kFiles + "/new", "2", {{"If-Match", "*"}}).status == 412);
    CHECK(api.ask("DELETE", kFiles + "/a", "", {{"If-Match", "\"other\""}}).status == 412);
    CHECK(api.ask("GET", kFiles + "/a").text == "1");
    CHECK(api.ask("PUT", kFiles + "/a", "2", {{"If-Match", "\"x\", " + tag}}).status == 200);
    CHECK(api.ask("PUT", kFiles + "/a", "3", {{"If-Match", tag}}).status == 412);
    CHECK(api.ask("GET", kFiles + "/a").text == "2");
}

TEST_CASE("a file that the client has is not sent again", "[agent][files]") {
    Api api;
    api.backend.add();
    (void)api.ask("PUT", kFiles + "/a", "1");
    const std::string tag(api.ask("GET", kFiles + "/a").headers.get("ETag"));
    const auto unchanged = api.ask("GET", kFiles + "/a", "", {{"If-None-Match", tag}});
    CHECK(unchanged.status == 304);
    CHECK(unchanged.text.empty());
    CHECK(api.ask("GET", kFiles + "/a", "", {{"If-None-Match", "W/" + tag}}).status == 304);
    CHECK(api.ask("GET", kFiles + "/a", "", {{"If-None-Match", "\"x\""}}).status == 200);
    CHECK(api.ask("GET", kFiles + "/a", "", {{"If-Match", "\"x\""}}).status == 412);
    CHECK(api.ask("GET", kFiles + "/a", "", {{"If-Match", tag}}).status == 200);
}

TEST_CASE("an archive is of a directory that is there", "[agent][files]") {
    Api api;
    api.backend.add();
    (void)api.ask("PUT", kFiles + "/a", "1");
    CHECK(api.ask("GET", kFiles + ".tar.zst?path=gone").status == 404);
    CHECK(api.ask("GET", kFiles + ".tar.zst?path=..").status == 400);
    CHECK(api.ask("GET", kFiles + ".tar.zst?path=a").status == 404);
    CHECK(api.ask("GET", "/v1/sessions/ses_9/files.tar.zst").status == 404);
}

TEST_CASE("an input that is mounted is read like a file and cannot be changed", "[agent][files]") {
    Api api;
    const auto session = api.backend.add();
    // The workspace has only the mount point; the file is elsewhere.
    (void)api.ask("PUT", kFiles + "/d/in.csv", "");
    const std::string source = api.backend.directory() + ".input";
    std::ofstream(source) << "0123456789";
    session->mounted = {{"d/in.csv", source}};
    const auto whole = api.ask("GET", kFiles + "/d/in.csv");
    CHECK(whole.status == 200);
    CHECK(whole.text == "0123456789");
    const std::string tag(whole.headers.get("ETag"));
    CHECK(api.ask("GET", kFiles + "/d/in.csv", "", {{"If-None-Match", tag}}).status == 304);
    CHECK(api.ask("GET", kFiles + "/d/in.csv", "", {{"Range", "bytes=2-4"}}).text == "234");
    const auto entry = api.ask("GET", kFiles + "?path=d").json["entries"][0];
    CHECK(entry["bytes"] == 10);
    CHECK(entry["read_only"] == true);
    CHECK_FALSE(api.ask("GET", kFiles).json["entries"][0].contains("read_only"));
    for (const auto& [method, target] :
         {std::pair("PUT", "/d/in.csv"),
          std::pair("DELETE", "/d/in.csv"),
          std::pair("DELETE", "/d?recursive=true")}) {
        CAPTURE(method, target);
        const auto refused = api.ask(method, kFiles + target, "");
        CHECK(refused.status == 409);
        CHECK(refused.json["type"] == "/problems/read-only-input");
    }
    CHECK(api.ask("PUT", kFiles + "/d/in.csv.txt", "x").status == 201);
    std::filesystem::remove(source);
    CHECK(api.ask("GET", kFiles + "/d/in.csv").status == 409);
}

TEST_CASE("a file below a plain file is a conflict", "[agent][files]") {
    Api api;
    api.backend.add();
    (void)api.ask("PUT", kFiles + "/plain", "x");
    for (const char* path : {"/plain/below", "/plain/below/"}) {
        const auto refused = api.ask("PUT", kFiles + path, "");
        CHECK(refused.status == 409);
        CHECK(refused.json["type"] == "/problems/not-a-directory");
    }
    CHECK(api.ask("GET", kFiles + "/plain/below").status == 404);
}

TEST_CASE("a directory of a thousand entries is listed and removed whole", "[agent][files]") {
    Api api;
    api.backend.add();
    std::filesystem::create_directory(api.backend.directory() + "/d");
    for (std::size_t i = 0; i < 1'000; ++i) {
        const std::ofstream made(api.backend.directory() + "/d/" + std::to_string(i));
        REQUIRE(made.good());
    }
    const auto listed = api.ask("GET", kFiles + "?path=d");
    CHECK(listed.status == 200);
    CHECK(listed.json["path"] == "d");
    REQUIRE(listed.json["entries"].size() == 1'000);
    CHECK(listed.json["entries"][0]["path"] == "d/0");
    CHECK(api.ask("DELETE", kFiles + "/d").status == 409);
    CHECK(api.ask("DELETE", kFiles + "/d?recursive=true").status == 204);
    CHECK_FALSE(std::filesystem::exists(api.backend.directory() + "/d"));
}

TEST_CASE("a directory of too many entries says so", "[agent][files]") {
    Api api;
    api.backend.add();
    for (std::size_t i = 0; i <= sandbox::kListEntriesMax; ++i) {
        const std::ofstream made(api.backend.directory() + "/" + std::to_string(i));
        REQUIRE(made.good());
    }
    const auto refused = api.ask("GET", kFiles);
    CHECK(refused.status == 413);
    CHECK(refused.json["type"] == "/problems/too-many-entries");
}

}  // namespace
}  // namespace cellkeep::api::test
