// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/jupyter/rest_fixture.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

namespace cellkeep::jupyter::test {
namespace {

constexpr const char* kSaved = R"({"type":"file","format":"text","content":"first"})";
constexpr const char* kChanged = R"({"type":"file","format":"text","content":"second"})";

TEST_CASE("a checkpoint is made, listed, gone back to and removed", "[contents][checkpoints]") {
    RestFixture rest;
    const auto session = rest.add_kernel();
    const std::string file = "/api/contents/" + session->id() + "/d/a.tar.txt";
    REQUIRE(rest.ask("PUT", file, kSaved).status == 201);
    CHECK(rest.ask("GET", file + "/checkpoints").json.empty());
    const auto made = rest.ask("POST", file + "/checkpoints");
    CHECK(made.status == 201);
    CHECK(made.json["id"] == "checkpoint");
    CHECK(made.headers.get("Location") == file + "/checkpoints/checkpoint");
    CHECK(rest.ask("GET", file + "/checkpoints").json[0] == made.json);
    CHECK(std::filesystem::exists(
        rest.backend.directory() + "/d/.ipynb_checkpoints/a.tar-checkpoint.txt"));

    REQUIRE(rest.ask("PUT", file, kChanged).status == 200);
    CHECK(rest.ask("POST", file + "/checkpoints/checkpoint").status == 204);
    CHECK(rest.ask("GET", file).json["content"] == "first");
    CHECK(rest.ask("DELETE", file + "/checkpoints/checkpoint").status == 204);
    CHECK(rest.ask("GET", file + "/checkpoints").json.empty());
    CHECK(rest.ask("POST", file + "/checkpoints/checkpoint").status == 404);
    CHECK(rest.ask("DELETE", file + "/checkpoints/checkpoint").status == 404);
}

TEST_CASE("a checkpoint that is not there, or of no file, is refused", "[contents][checkpoints]") {
    RestFixture rest;
    const auto session = rest.add_kernel();
    const std::string root = "/api/contents/" + session->id();
    REQUIRE(rest.ask("PUT", root + "/a.txt", kSaved).status == 201);
    REQUIRE(rest.ask("POST", root + "/a.txt/checkpoints").status == 201);
    CHECK(rest.ask("POST", root + "/none.txt/checkpoints").status == 404);
    CHECK(rest.ask("POST", root + "/a.txt/checkpoints/other").status == 404);
    CHECK(rest.ask("DELETE", root + "/a.txt/checkpoints/other").status == 404);
    CHECK(rest.ask("POST", root + "/checkpoints").status == 400);
    CHECK(rest.ask("GET", root + "/a.txt/checkpoints/checkpoint").status == 405);
    CHECK(rest.ask("DELETE", root + "/a.txt/checkpoints").status == 405);
    CHECK(rest.ask("POST", "/api/contents/checkpoints").status == 404);
    CHECK(rest.ask("PUT", root + "/d", R"({"type":"directory"})").status == 201);
    CHECK(rest.ask("POST", root + "/d/checkpoints").status == 400);
    const std::string directory = rest.backend.directory();
    std::filesystem::create_symlink("/etc/passwd", directory + "/l.txt");
    std::filesystem::create_symlink(
        "/etc/passwd", directory + "/.ipynb_checkpoints/b-checkpoint.txt");
    CHECK(rest.ask("POST", root + "/l.txt/checkpoints").status == 400);
    CHECK(rest.ask("GET", root + "/b.txt/checkpoints").json.empty());
    CHECK(rest.ask("POST", root + "/b.txt/checkpoints/checkpoint").status == 404);
}

TEST_CASE("a checkpoint goes with its file", "[contents][checkpoints]") {
    RestFixture rest;
    const auto session = rest.add_kernel();
    const std::string root = "/api/contents/" + session->id();
    REQUIRE(rest.ask("PUT", root + "/a.txt", kSaved).status == 201);
    REQUIRE(rest.ask("PUT", root + "/d", R"({"type":"directory"})").status == 201);
    REQUIRE(rest.ask("POST", root + "/a.txt/checkpoints").status == 201);
    const std::string there = R"({"path":")" + session->id() + R"(/d/b.txt"})";
    CHECK(rest.ask("PATCH", root + "/a.txt", there).status == 200);
    CHECK(rest.ask("GET", root + "/a.txt/checkpoints").json.empty());
    CHECK(rest.ask("GET", root + "/d/b.txt/checkpoints").json.size() == 1);
    CHECK(rest.ask("DELETE", root + "/d/b.txt").status == 204);
    CHECK(rest.ask("GET", root + "/d/b.txt/checkpoints").json.empty());
    // The directory of checkpoints does not count as content of a directory.
    CHECK(rest.ask("DELETE", root + "/d").status == 204);
    CHECK_FALSE(std::filesystem::exists(rest.backend.directory() + "/d"));
}

}  // namespace
}  // namespace cellkeep::jupyter::test
