// SPDX-License-Identifier: Apache-2.0
//
// What PUT, POST, PATCH and DELETE of /api/contents do to files.
#include "kernel-manager/jupyter/rest/contents/limits.hpp"
#include "protocol/base64.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/unit/jupyter/rest_fixture.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace cellkeep::jupyter::test {
namespace {

class WritingFixture : public RestFixture {
 public:
    WritingFixture() : session(add_kernel()), root("/api/contents/" + session->id()) {}

    Answer put(const std::string& name, const nlohmann::json& body) {
        return ask("PUT", root + "/" + name, body.dump());
    }
    Answer post(const std::string& name, const nlohmann::json& body) {
        return ask("POST", root + name, body.dump());
    }
    std::string at(const std::string& name) const { return backend.directory() + "/" + name; }
    std::string read(const std::string& name) const {
        std::ifstream file(at(name), std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    std::string api(const std::string& name) const { return session->id() + "/" + name; }

    std::shared_ptr<FakeSession> session;
    std::string root;
};

nlohmann::json text_file(const std::string& content) {
    return {{"type", "file"}, {"format", "text"}, {"content", content}};
}

nlohmann::json piece(int number, const std::string& content) {
    nlohmann::json body = text_file(content);
    body["chunk"] = number;
    return body;
}

TEST_CASE("a file is saved, made and replaced", "[contents]") {
    WritingFixture rest;
    const auto made = rest.put("d e/a.txt", text_file("one\n"));
    CHECK(made.status == 201);
    CHECK(made.headers.get("Location") == rest.root + "/d%20e/a.txt");
    CHECK(made.json["content"].is_null());
    CHECK(made.json["size"] == 4);
    CHECK(rest.put("d e/a.txt", text_file("\"ü\" \\ 𝄞")).status == 200);
    CHECK(rest.read("d e/a.txt") == "\"ü\" \\ 𝄞");
    nlohmann::json bytes = {{"type", "file"}, {"format", "base64"}, {"content", "/wB6"}};
    CHECK(rest.put("b.bin", bytes).status == 201);
    CHECK(rest.read("b.bin") == std::string("\xff\x00z", 3));
    bytes["content"] = "/wB6\n/wB6\r\n";
    CHECK(rest.put("b.bin", bytes).status == 200);
    CHECK(rest.read("b.bin") == std::string("\xff\x00z\xff\x00z", 6));
    bytes["content"] = "";
    CHECK(rest.put("b.bin", bytes).status == 200);
    CHECK(rest.read("b.bin").empty());
}

TEST_CASE("large contents are written whole in every format", "[contents]") {
    WritingFixture rest;
    std::string text;
    while (text.size() < 1'000'000) {
        text += "zeile \"ä€𝄞\" \\ \x01\n";
    }
    CHECK(rest.put("a.txt", text_file(text)).status == 201);
    CHECK(rest.read("a.txt") == text);
    const std::string escaped = text_file(text).dump(-1, ' ', true);  // \uXXXX for all but ASCII
    CHECK(rest.ask("PUT", rest.root + "/b.txt", escaped).status == 201);
    CHECK(rest.read("b.txt") == text);
    const nlohmann::json bytes = {
        {"type", "file"}, {"format", "base64"}, {"content", protocol::encode_base64(text)}};
    CHECK(rest.put("c.txt", bytes).status == 201);
    CHECK(rest.read("c.txt") == text);
    const nlohmann::json notebook = {
        {"cells", nlohmann::json::array()}, {"metadata", {{"x", text}}}};
    CHECK(rest.put("n.ipynb", {{"type", "notebook"}, {"content", notebook}}).status == 201);
    CHECK(nlohmann::json::parse(rest.read("n.ipynb")) == notebook);
}

TEST_CASE("a file that comes in pieces is put together", "[contents]") {
    WritingFixture rest;
    REQUIRE(rest.put("a.txt", text_file("what was there")).status == 201);
    CHECK(rest.put("a.txt", piece(1, "one ")).status == 200);
    CHECK(rest.put("a.txt", piece(2, "two ")).status == 200);
    CHECK(rest.put("a.txt", piece(-1, "three")).status == 200);
    CHECK(rest.read("a.txt") == "one two three");
    for (const nlohmann::json& chunk :
         {nlohmann::json(0),
          nlohmann::json(-2),
          nlohmann::json("1"),
          nlohmann::json(1.5),
          nlohmann::json(1e30)}) {
        nlohmann::json body = text_file("x");
        body["chunk"] = chunk;
        INFO(body.dump());
        CHECK(rest.put("a.txt", body).status == 400);
    }
    CHECK(rest.put("none.txt", piece(2, "x")).status == 404);
    nlohmann::json notebook = {
        {"type", "notebook"}, {"content", nlohmann::json::object()}, {"chunk", 1}};
    CHECK(rest.put("n.ipynb", notebook).status == 400);
    std::filesystem::create_symlink("a.txt", rest.at("l.txt"));
    CHECK(rest.put("l.txt", piece(2, "x")).status == 400);
    CHECK(rest.read("a.txt") == "one two three");
}

TEST_CASE("a body that does not fit is refused and changes nothing", "[contents]") {
    WritingFixture rest;
    REQUIRE(rest.put("a.txt", text_file("kept")).status == 201);
    REQUIRE(rest.put("d", {{"type", "directory"}}).status == 201);
    const std::string bodies[] = {
        "",
        "null",
        "[]",
        "1",
        "{",
        "{\"type\":\"file\",}",
        "{\"type\":\"file\",\"format\":\"text\",\"content\":\"\xff\"}",
        "{\"type\":\"file\",\"format\":\"text\",\"content\":\"\\ud800\"}",
        R"({"format":"text","content":"x"})",
        R"({"type":"file","format":"text"})",
        R"({"type":"file","format":"text","content":null})",
        R"({"type":"file","content":"x"})",
        R"({"type":"file","format":"json","content":"x"})",
        R"({"type":"file","format":"text","content":{}})",
        R"({"type":"file","format":"text","content":1})",
        R"({"type":"file","format":"base64","content":"a"})",
        R"({"type":"file","format":"base64","content":"YQ==YQ=="})",
        R"({"type":"file","format":"base64","content":"Y Q="})",
        R"({"type":"notebook","format":"json","content":"{}"})",
        R"({"type":"notebook","format":"json","content":[]})",
        R"({"type":"notebook","format":"text","content":{}})",
        R"({"type":1,"format":"text","content":"x"})",
        R"({"type":"file","format":[],"content":"x"})",
        R"({"type":"directory"})",
        R"({"copy_from":"x","type":"file","format":"text","content":"x"})",
        R"({"type":"file","format":"text","content":"x","path":")" + std::string(5000, 'p') +
            "\"}"};
    for (const std::string& body : bodies) {
        INFO(body);
        CHECK(rest.ask("PUT", rest.root + "/a.txt", body).status == 400);
    }
    CHECK(rest.put("d", text_file("x")).status == 400);
    CHECK(rest.put("a.txt/b", text_file("x")).status == 404);
    CHECK(rest.put(".hidden", text_file("x")).status == 404);
    const cellkeep::test::TemporaryDirectory outside;
    std::filesystem::create_directory_symlink(outside.path(), rest.at("out"));
    CHECK(rest.put("out/x", text_file("x")).status >= 400);
    CHECK(outside.entry_count() == 0);
    CHECK(rest.read("a.txt") == "kept");
    const auto left = std::filesystem::directory_iterator(rest.backend.directory());
    CHECK(std::distance(begin(left), end(left)) == 3);  // no upload is left behind
}

TEST_CASE("the server names what it makes", "[contents]") {
    WritingFixture rest;
    CHECK(rest.post("", {{"type", "notebook"}}).json["name"] == "Untitled.ipynb");
    const auto second = rest.post("/", {{"type", "notebook"}});
    CHECK(second.status == 201);
    CHECK(second.json["name"] == "Untitled1.ipynb");
    CHECK(second.json["type"] == "notebook");
    CHECK(second.headers.get("Location") == rest.root + "/Untitled1.ipynb");
    CHECK(rest.ask("GET", rest.root + "/Untitled.ipynb").json["content"]["nbformat"] == 4);
    CHECK(rest.post("", {{"type", "directory"}}).json["name"] == "Untitled Folder");
    CHECK(rest.post("", {{"type", "directory"}}).json["name"] == "Untitled Folder 1");
    const auto inside = rest.post("/Untitled%20Folder", {{"type", "file"}, {"ext", ".txt"}});
    CHECK(inside.json["path"] == rest.api("Untitled Folder/untitled.txt"));
    CHECK(rest.ask("POST", rest.root).json["name"] == "untitled");
    CHECK(rest.post("", {{"ext", ".ipynb"}}).json["name"] == "Untitled2.ipynb");
    CHECK(rest.post("/Untitled.ipynb", {{"type", "file"}}).status == 400);
    CHECK(rest.post("/none", {{"type", "file"}}).status == 404);
    CHECK(rest.post("", {{"type", "file"}, {"ext", "/../x"}}).status == 400);
    CHECK(rest.post("", {{"type", "file"}, {"ext", std::string(1, '\0')}}).status == 400);
    CHECK(rest.post("", {{"type", "file"}, {"ext", std::string(300, 'x')}}).status == 400);
}

TEST_CASE("names that the server tries are bounded", "[contents]") {
    WritingFixture rest;
    std::ofstream(rest.at("untitled.x")) << "";
    for (std::size_t i = 1; i + 1 < limits::kContentsNamesMax; ++i) {
        std::ofstream(rest.at("untitled" + std::to_string(i) + ".x")) << "";
    }
    const nlohmann::json wanted = {{"type", "file"}, {"ext", ".x"}};
    CHECK(rest.post("", wanted).status == 201);
    CHECK(rest.post("", wanted).status == 409);
}

TEST_CASE("a copy has a free name", "[contents]") {
    WritingFixture rest;
    REQUIRE(rest.put("a.tar.gz", text_file("x")).status == 201);
    REQUIRE(rest.put("d", {{"type", "directory"}}).status == 201);
    const nlohmann::json wanted = {{"copy_from", rest.api("a.tar.gz")}};
    const auto copy = rest.post("", wanted);
    CHECK(copy.status == 201);
    CHECK(copy.json["name"] == "a-Copy1.tar.gz");
    CHECK(rest.read("a-Copy1.tar.gz") == "x");
    const nlohmann::json again = {{"copy_from", "/" + rest.api("a-Copy1.tar.gz")}};
    CHECK(rest.post("", again).json["name"] == "a-Copy2.tar.gz");
    CHECK(rest.post("/d", wanted).json["path"] == rest.api("d/a.tar.gz"));
    const auto other = rest.add_kernel(kOtherUuid);
    const auto there = rest.ask("POST", "/api/contents/" + other->id(), wanted.dump());
    CHECK(there.status == 201);
    CHECK(rest.post("", {{"copy_from", rest.api("d")}}).status == 400);
    CHECK(rest.post("", {{"copy_from", rest.api("none")}}).status == 404);
    CHECK(rest.post("", {{"copy_from", rest.session->id()}}).status == 400);
    CHECK(rest.post("", {{"copy_from", rest.api("../x")}}).status == 400);
    std::filesystem::create_symlink("/etc/passwd", rest.at("l"));
    CHECK(rest.post("", {{"copy_from", rest.api("l")}}).status == 400);
}

TEST_CASE("a file or a directory gets another path", "[contents]") {
    WritingFixture rest;
    REQUIRE(rest.put("a.txt", text_file("a")).status == 201);
    REQUIRE(rest.put("b.txt", text_file("b")).status == 201);
    REQUIRE(rest.put("d", {{"type", "directory"}}).status == 201);
    const auto move = [&](const std::string& from, const std::string& to) {
        return rest.ask("PATCH", rest.root + "/" + from, nlohmann::json({{"path", to}}).dump());
    };
    const auto moved = move("a.txt", rest.api("d/c.txt"));
    CHECK(moved.status == 200);
    CHECK(moved.json["path"] == rest.api("d/c.txt"));
    CHECK(rest.read("d/c.txt") == "a");
    CHECK(move("d", "/" + rest.api("e")).status == 200);
    CHECK(move("e", rest.api("e")).status == 200);
    CHECK(move("b.txt", rest.api("e/c.txt")).status == 409);
    CHECK(move("b.txt", rest.api("e")).status == 409);
    CHECK(move("e", rest.api("e/f")).status == 400);
    CHECK(move("none", rest.api("x")).status == 404);
    CHECK(move("b.txt", rest.api("none/x")).status == 404);
    CHECK(move("b.txt", rest.api(".x")).status == 404);
    CHECK(move("b.txt", "x.txt").status == 404);  // no such session
    CHECK(move("b.txt", "").status == 400);
    CHECK(rest.ask("PATCH", rest.root + "/b.txt").status == 400);
    CHECK(rest.ask("PATCH", rest.root + "/b.txt", "[]").status == 400);
    const auto other = rest.add_kernel(kOtherUuid);
    CHECK(move("b.txt", other->id() + "/b.txt").status == 400);
    CHECK(rest.read("b.txt") == "b");
    CHECK(rest.read("e/c.txt") == "a");
}

TEST_CASE("a file or an empty directory is removed", "[contents]") {
    WritingFixture rest;
    REQUIRE(rest.put("d/a.txt", text_file("a")).status == 201);
    CHECK(rest.ask("DELETE", rest.root + "/d").status == 400);
    CHECK(rest.read("d/a.txt") == "a");
    CHECK(rest.ask("DELETE", rest.root + "/d/a.txt").status == 204);
    CHECK(rest.ask("DELETE", rest.root + "/d/a.txt").status == 404);
    CHECK(rest.ask("DELETE", rest.root + "/d").status == 204);
    CHECK_FALSE(std::filesystem::exists(rest.at("d")));
}

}  // namespace
}  // namespace cellkeep::jupyter::test
