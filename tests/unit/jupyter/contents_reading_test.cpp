// SPDX-License-Identifier: Apache-2.0
//
// What GET of /api/contents says of files.
#include "kernel-manager/jupyter/rest/contents/contents_turns.hpp"
#include "kernel-manager/jupyter/rest/contents/limits.hpp"
#include "protocol/base64.hpp"
#include "protocol/sha256.hpp"
#include "tests/unit/jupyter/rest_fixture.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

namespace cellkeep::jupyter::test {
namespace {

class ReadingFixture : public RestFixture {
 public:
    ReadingFixture() : session(add_kernel()), root("/api/contents/" + session->id()) {}

    void put(const std::string& name, const std::string& text) const {
        std::ofstream(backend.directory() + "/" + name, std::ios::binary) << text;
    }
    Answer get(const std::string& name) { return ask("GET", root + "/" + name); }

    std::shared_ptr<FakeSession> session;
    std::string root;
};

TEST_CASE("a text file has the members of Jupyter Server's model", "[contents]") {
    ReadingFixture rest;
    rest.put("a.csv", "a,b\n\"ü\"\n");
    const auto answer = rest.get("a.csv");
    CHECK(answer.status == 200);
    CHECK(answer.json["name"] == "a.csv");
    CHECK(answer.json["path"] == rest.session->id() + "/a.csv");
    CHECK(answer.json["type"] == "file");
    CHECK(answer.json["format"] == "text");
    CHECK(answer.json["mimetype"] == "text/csv");
    CHECK(answer.json["content"] == "a,b\n\"ü\"\n");
    CHECK(answer.json["size"] == 9);
    CHECK(answer.json["writable"] == true);
    CHECK(answer.json["hash"].is_null());
    CHECK(answer.json["created"] == answer.json["last_modified"]);
    const auto bare = rest.get("a.csv?content=0");
    CHECK(bare.json["content"].is_null());
    CHECK(bare.json["format"].is_null());
    CHECK(bare.json["size"] == 9);
}

TEST_CASE("a directory of more entries than a slice has is listed whole", "[contents]") {
    ReadingFixture rest;
    constexpr std::size_t kFiles = 2 * kContentsSliceEntries + 1;
    for (std::size_t i = 0; i < kFiles; ++i) {
        rest.put("f" + std::to_string(i), "x");
    }
    rest.put(".hidden", "x");
    const auto answer = rest.get("");
    CHECK(answer.status == 200);
    CHECK(answer.json["format"] == "json");
    CHECK(answer.json["type"] == "directory");
    REQUIRE(answer.json["content"].size() == kFiles);
    CHECK(answer.json["content"][0]["name"] == "f0");
    CHECK(answer.json["content"][0]["type"] == "file");
}

TEST_CASE("bytes that are no text come as base64", "[contents]") {
    ReadingFixture rest;
    rest.put("a.bin", std::string("\xff\x00z", 3));
    const auto answer = rest.get("a.bin");
    CHECK(answer.json["format"] == "base64");
    CHECK(answer.json["content"] == "/wB6");
    CHECK(rest.get("a.bin?format=base64").json["content"] == "/wB6");
    CHECK(rest.get("a.bin?format=text").status == 400);
    rest.put("cut.txt", "abc\xc3");
    CHECK(rest.get("cut.txt").json["format"] == "base64");
    CHECK(rest.get("cut.txt?type=file&format=text").status == 400);
}

TEST_CASE("large files come whole in every format", "[contents]") {
    ReadingFixture rest;
    std::string text;
    while (text.size() < 1'000'000) {
        text += "zeile \"ä€𝄞\" \\ \x01\n";
    }
    rest.put("a.txt", text);
    CHECK(rest.get("a.txt").json["content"] == text);
    const auto base64 = rest.get("a.txt?format=base64").json["content"].get<std::string>();
    CHECK(protocol::decode_base64(base64) == text);
    nlohmann::json notebook = {{"cells", nlohmann::json::array()}, {"metadata", {{"x", text}}}};
    rest.put("a.ipynb", notebook.dump(1));
    const auto answer = rest.get("a.ipynb");
    CHECK(answer.json["content"] == notebook);
    CHECK(answer.json["format"] == "json");
}

TEST_CASE("a notebook is its JSON, and a file when it is asked for as one", "[contents]") {
    ReadingFixture rest;
    rest.put("n.ipynb", R"({"cells": [], "nbformat": 4})");
    const auto answer = rest.get("n.ipynb");
    CHECK(answer.json["type"] == "notebook");
    CHECK(answer.json["format"] == "json");
    CHECK(answer.json["mimetype"].is_null());
    CHECK(answer.json["content"]["nbformat"] == 4);
    const auto file = rest.get("n.ipynb?type=file");
    CHECK(file.json["type"] == "file");
    CHECK(file.json["format"] == "text");
    CHECK(file.json["content"] == R"({"cells": [], "nbformat": 4})");
    rest.put("n.txt", R"({"cells": []})");
    CHECK(rest.get("n.txt?type=notebook").json["type"] == "notebook");
}

TEST_CASE(
    "a notebook that is no JSON object is unreadable, and can be repaired as a file",
    "[contents]") {
    ReadingFixture rest;
    for (const char* text :
         {"",
          "not json",
          "[1]",
          "\"a\"",
          "{\"cells\":",
          "{\"a\":\"\xff\"}",
          "{} x",
          "{\"content\":1}}"}) {
        INFO(text);
        rest.put("bad.ipynb", text);
        CHECK(rest.get("bad.ipynb").status == 400);
        CHECK(rest.get("bad.ipynb?type=file").status == 200);
        CHECK(rest.get("bad.ipynb?content=0").status == 200);
    }
}

TEST_CASE("a hash is the file's SHA-256", "[contents]") {
    ReadingFixture rest;
    rest.put("a.txt", "abc");
    for (const char* query : {"?hash=1", "?hash=1&content=0"}) {
        const auto answer = rest.get(std::string("a.txt") + query);
        CHECK(answer.json["hash"] == protocol::sha256_hex("abc"));
        CHECK(answer.json["hash_algorithm"] == "sha256");
    }
}

TEST_CASE("a query that is not understood is refused", "[contents]") {
    ReadingFixture rest;
    rest.put("a.txt", "abc");
    std::filesystem::create_directory(rest.backend.directory() + "/d");
    CHECK(rest.get("a.txt?type=file&format=text&content=1&hash=0").status == 200);
    for (const char* query :
         {"a.txt?format=xml",
          "a.txt?content=2",
          "a.txt?content=",
          "a.txt?hash=yes",
          "a.txt?type=directory",
          "d?type=file",
          "d?type=notebook"}) {
        INFO(query);
        CHECK(rest.get(query).status == 400);
    }
    CHECK(rest.get("d?type=directory").json["content"].empty());
    CHECK(rest.get("a.txt?type=unheard-of").json["type"] == "file");
}

TEST_CASE("a file that is too large for an answer names what sends it", "[contents]") {
    ReadingFixture rest;
    rest.put("big", "");
    const std::string path = rest.backend.directory() + "/big";
    std::filesystem::resize_file(path, limits::kContentsFileBytesMax + 1);
    const auto answer = rest.get("big");
    CHECK(answer.status == 413);
    CHECK(answer.json["message"].get<std::string>().find("/files/") != std::string::npos);
    CHECK(rest.get("big?content=0").json["size"] == limits::kContentsFileBytesMax + 1);
    CHECK(rest.get("big?content=0&hash=1").status == 413);
}

TEST_CASE("an input of the operator's is read-only", "[contents]") {
    ReadingFixture rest;
    const std::string file = rest.backend.directory() + "-input";
    std::ofstream(file) << "shared";
    rest.put("data.csv", "");  // the place of the mount
    rest.session->mounted = {{"data.csv", file}};
    const auto answer = rest.get("data.csv");
    CHECK(answer.json["writable"] == false);
    CHECK(answer.json["content"] == "shared");
    CHECK(answer.json["size"] == 6);
    CHECK(rest.ask("GET", rest.root).json["content"][0]["writable"] == false);
    const std::string path = rest.root + "/data.csv";
    CHECK(rest.ask("PUT", path, R"({"type":"file","format":"text","content":"x"})").status == 409);
    CHECK(rest.ask("DELETE", path).status == 409);
    const std::string there = R"({"path":")" + rest.session->id() + R"(/moved"})";
    CHECK(rest.ask("PATCH", path, there).status == 409);
    std::filesystem::remove(file);
}

}  // namespace
}  // namespace cellkeep::jupyter::test
