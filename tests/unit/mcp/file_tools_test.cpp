// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/limits.hpp"
#include "kernel-manager/mcp/tools/file_slice.hpp"
#include "protocol/base64.hpp"
#include "tests/unit/mcp/mcp_server.hpp"

#include <catch2/catch.hpp>

#include <sys/stat.h>

#include <fstream>
#include <string>

namespace cellkeep::mcp::test {
namespace {

struct Files {
    McpServer server;
    std::shared_ptr<FakeSession> session = server.backend.add();

    void put(const std::string& path, const std::string& bytes) const {
        std::ofstream file(server.backend.directory() + "/" + path, std::ios::binary);
        file << bytes;
    }
    std::string get(const std::string& path) const {
        std::ifstream file(server.backend.directory() + "/" + path, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    nlohmann::json tool(const std::string& name, nlohmann::json arguments) {
        arguments["session"] = "ses_1";
        return server.tool(name, std::move(arguments));
    }
};

TEST_CASE("a file that was written is read and listed", "[mcp][files]") {
    Files files;
    const auto written = files.tool("write_file", {{"path", "d/a.txt"}, {"text", "h\u00e9\n"}});
    CHECK(written["isError"] == false);
    CHECK(written["structuredContent"]["bytes"] == 4);
    CHECK(written["structuredContent"]["uri"] == "cellkeep://sessions/ses_1/files/d/a.txt");
    CHECK(files.get("d/a.txt") == "h\u00e9\n");
    for (const char* path : {"d/a.txt", "/workspace/d/a.txt", "./d/a.txt"}) {
        const auto read = files.tool("read_file", {{"path", path}});
        CHECK(read["structuredContent"]["text"] == "h\u00e9\n");
        CHECK(read["structuredContent"]["next_offset"] == nullptr);
    }
    const auto listed = files.tool("list_files", {{"path", "d"}});
    CHECK(
        listed["structuredContent"]["entries"] ==
        nlohmann::json::array({{{"path", "d/a.txt"}, {"kind", "file"}, {"bytes", 4}}}));
    CHECK(files.tool("list_files", {{"path", "/workspace"}})["structuredContent"]["total"] == 1);
    CHECK(files.session->touched > 0);
}

TEST_CASE("bytes come and go as base64, pictures as images", "[mcp][files]") {
    Files files;
    const std::string bytes("\x00\x01\xff", 3);
    (void)files.tool("write_file", {{"path", "a.bin"}, {"base64", protocol::encode_base64(bytes)}});
    CHECK(files.get("a.bin") == bytes);
    const auto read = files.tool("read_file", {{"path", "a.bin"}});
    CHECK(read["structuredContent"]["base64"] == "AAH/");
    CHECK(read["content"][0]["resource"]["blob"] == "AAH/");
    files.put("a.png", bytes);
    const auto picture = files.tool("read_file", {{"path", "a.png"}});
    CHECK(picture["content"][0]["type"] == "image");
    CHECK(picture["content"][0]["mimeType"] == "image/png");
}

TEST_CASE("a long file is read in parts that end with a character", "[mcp][files]") {
    Files files;
    files.put("t.txt", "ab\u00e9cd");
    auto part = files.tool("read_file", {{"path", "t.txt"}, {"length", 3}});
    CHECK(part["structuredContent"]["text"] == "ab");
    CHECK(part["structuredContent"]["next_offset"] == 2);
    part = files.tool("read_file", {{"path", "t.txt"}, {"length", 4}, {"offset", 2}});
    CHECK(part["structuredContent"]["text"] == "\u00e9cd");
    CHECK(part["structuredContent"]["next_offset"] == nullptr);
    part = files.tool("read_file", {{"path", "t.txt"}, {"offset", 99}});
    CHECK(part["structuredContent"]["text"] == "");
    CHECK(part["structuredContent"]["bytes"] == 6);
    files.put("long.txt", std::string(kReadBytesDefault + 1, 'x'));
    part = files.tool("read_file", {{"path", "long.txt"}});
    CHECK(part["structuredContent"]["next_offset"] == kReadBytesDefault);
    CHECK(
        files.tool("read_file", {{"path", "long.txt"}, {"length", kReadBytesMax}})["isError"] ==
        false);
    CHECK(
        files.tool("read_file", {{"path", "long.txt"}, {"length", kReadBytesMax + 1}})["isError"] ==
        true);
}

TEST_CASE("paths that lead elsewhere, or nowhere, are refused", "[mcp][files]") {
    Files files;
    files.put("plain", "x");
    for (const char* path :
         {"../x",
          "a/../x",
          "/etc/passwd",
          "a//b",
          "missing",
          "plain/x",
          "",
          "/workspace",
          "/workspace/../etc"}) {
        CAPTURE(path);
        const auto refused = files.tool("read_file", {{"path", path}});
        CHECK(refused["isError"] == true);
        CHECK_FALSE(refused["structuredContent"]["error"]["kind"].get<std::string>().empty());
    }
    for (const char* path : {"../x", "/etc/x", "plain/x", "", "a/./b"}) {
        CAPTURE(path);
        CHECK(files.tool("write_file", {{"path", path}, {"text", "x"}})["isError"] == true);
    }
    CHECK(files.tool("list_files", {{"path", "missing"}})["isError"] == true);
    CHECK(files.tool("read_file", {{"path", "plain"}})["isError"] == false);
}

TEST_CASE("what is to be written must be one thing, and not too long", "[mcp][files]") {
    Files files;
    CHECK(files.tool("write_file", {{"path", "a"}})["isError"] == true);
    CHECK(
        files.tool("write_file", {{"path", "a"}, {"text", "x"}, {"base64", "eA=="}})["isError"] ==
        true);
    for (const char* wrong : {"eA", "e A==", "\u00e4", "===="}) {
        CHECK(files.tool("write_file", {{"path", "a"}, {"base64", wrong}})["isError"] == true);
    }
    CHECK(
        files.tool(
            "write_file",
            {{"path", "a"},
             {"text",
              std::string(kWriteBytesMax + 1, 'x')}})["structuredContent"]["error"]["kind"] ==
        "limit_exceeded");
    CHECK(files.get("a").empty());
    CHECK(
        files.tool(
            "write_file", {{"path", "a"}, {"text", std::string(kWriteBytesMax, 'x')}})["isError"] ==
        false);
}

TEST_CASE("an input of the operator's is read and not written", "[mcp][files]") {
    Files files;
    files.put("there", "given");
    files.session->mounted["in/data.csv"] = files.server.backend.directory() + "/there";
    CHECK(
        files.tool("read_file", {{"path", "in/data.csv"}})["structuredContent"]["text"] == "given");
    for (const char* path : {"in/data.csv", "in"}) {
        CHECK(
            files.tool(
                "write_file",
                {{"path", path}, {"text", "x"}})["structuredContent"]["error"]["kind"] ==
            "read_only_input");
    }
}

TEST_CASE("a listing shows kEntriesShownMax and counts all", "[mcp][files]") {
    Files files;
    for (std::size_t i = 0; i <= kEntriesShownMax; ++i) {
        files.put("f" + std::to_string(i), "");
    }
    const auto listed = files.tool("list_files", nlohmann::json::object());
    CHECK(listed["structuredContent"]["entries"].size() == kEntriesShownMax);
    CHECK(listed["structuredContent"]["total"] == kEntriesShownMax + 1);
}

TEST_CASE("files are resources", "[mcp][resources]") {
    Files files;
    files.put("a b.txt", "text");
    files.put("c.bin", std::string("\x00\x01", 2));
    files.put("long", std::string(kReadBytesMax + 1, 'x'));
    files.put("longest", std::string(kReadBytesMax, 'x'));
    const auto listed = files.server.call("resources/list").json["result"];
    CHECK(listed["resources"].size() == 4);
    CHECK(listed["resources"][0]["uri"] == "cellkeep://sessions/ses_1/files/a%20b.txt");
    CHECK(listed["ttlMs"] == 0);
    const auto templates = files.server.call("resources/templates/list").json["result"];
    CHECK(templates["resourceTemplates"].size() == 3);
    const auto read = [&](const std::string& uri) {
        return files.server.call("resources/read", {{"uri", uri}});
    };
    const std::string root = "cellkeep://sessions/ses_1/files/";
    CHECK(read(root + "a%20b.txt").json["result"]["contents"][0]["text"] == "text");
    CHECK(read(root + "c.bin").json["result"]["contents"][0]["blob"] == "AAE=");
    CHECK(read(root + "longest").status == 200);
    for (const std::string& wrong :
         {root,
          root + "missing",
          root + "../x",
          root + "long",
          std::string("file:///etc/passwd"),
          std::string("cellkeep://sessions/ses_9/files/a"),
          std::string("cellkeep://"),
          std::string("cellkeep://sessions"),
          std::string("cellkeep://sessions/ses_9"),
          std::string("cellkeep://sessions/ses_1/files"),
          std::string("cellkeep://sessions/ses_1/executions/exe_9/output"),
          std::string("cellkeep://sessions/ses_1/executions/exe_9"),
          std::string("cellkeep://sessions/ses_1/" + std::string(kUriBytesMax, 'x')),
          std::string("cellkeep://other/ses_1/files/a"),
          std::string("x")}) {
        CAPTURE(wrong);
        const auto answer = read(wrong);
        CHECK(answer.status == 400);
        CHECK(answer.json["error"]["code"] == -32602);
    }
    const auto report = nlohmann::json::parse(
        read("cellkeep://sessions/ses_1").json["result"]["contents"][0]["text"].get<std::string>());
    CHECK(report["session_id"] == "ses_1");
    const auto run = files.server.tool("run_code", {{"code", "1"}, {"session", "ses_1"}});
    const std::string output = "cellkeep://sessions/ses_1/executions/" +
                               run["structuredContent"]["execution_id"].get<std::string>() +
                               "/output";
    CHECK(read(output).json["result"]["contents"][0]["mimeType"] == "text/plain");
    // In the earlier revisions what is not there has a code of its own.
    const std::string id = files.server.begin("2025-11-25");
    const auto earlier = files.server.in_session(id, "resources/read", {{"uri", root + "missing"}});
    CHECK(earlier.status == 200);
    CHECK(earlier.json["error"]["code"] == -32002);
}

TEST_CASE(
    "resources/list looks into no further session after kEntriesLookedAtMax", "[mcp][resources]") {
    Files files;
    // All sessions of the fake have one directory. Directories are listed as no resource.
    (void)files.server.call("resources/list");
    files.put("f", "");
    const auto count = [&] {
        return files.server.call("resources/list").json["result"]["resources"].size();
    };
    for (int i = 0; i < 3; ++i) {
        (void)files.server.backend.add();
    }
    CHECK(count() == 4);
    for (std::size_t i = 0; i < kEntriesLookedAtMax; ++i) {
        REQUIRE(
            ::mkdir((files.server.backend.directory() + "/d" + std::to_string(i)).c_str(), 0700) ==
            0);
    }
    CHECK(count() == 1);
}

}  // namespace
}  // namespace cellkeep::mcp::test
