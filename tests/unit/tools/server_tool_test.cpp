// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/tools/server_tool.hpp"

#include "kernel-manager/tools/limits.hpp"
#include "protocol/limits.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace cellkeep::tools {
namespace {

using nlohmann::json;

json tool_of(const std::string& name) {
    return {{"name", name}, {"description", "d"}, {"inputSchema", {{"type", "object"}}}};
}

ToolPage page_of(const json& tools) {
    auto page = read_tool_page("srv", {{"tools", tools}});
    REQUIRE(page.has_value());
    return std::move(page).value();
}

TEST_CASE("a tool is named and described", "[tools]") {
    json tool = tool_of("create-issue");
    tool["outputSchema"] = {{"x-fastmcp-wrap-result", true}};
    const ToolPage page = page_of(json::array({tool}));
    REQUIRE(page.tools.size() == 1);
    const ServerTool& one = page.tools.front();
    CHECK(one.name == "create-issue");
    CHECK(one.word == "create_issue");
    CHECK(one.description == "d");
    CHECK(one.wraps_result);
    CHECK(one.input_schema == json{{"type", "object"}});
    CHECK(page.cursor.empty());
}

TEST_CASE("all that a tool says of itself is in its digest", "[tools]") {
    const std::string digest = page_of(json::array({tool_of("t")})).tools.front().digest;
    CHECK(digest.size() == 64);
    CHECK(page_of(json::array({tool_of("t")})).tools.front().digest == digest);
    for (const char* member :
         {"name", "title", "description", "inputSchema", "outputSchema", "annotations"}) {
        CAPTURE(member);
        json other = tool_of("t");
        other[member] = std::string(member).find("chema") == std::string::npos &&
                                std::string(member) != "annotations"
                            ? json("changed")
                            : json{{"changed", 1}};
        CHECK(page_of(json::array({other})).tools.front().digest != digest);
    }
}

TEST_CASE("what is no tool is left out", "[tools]") {
    json large = tool_of("large");
    large["description"] = std::string(kToolTextBytesMax, 'x');
    const ToolPage page = page_of(
        {1,
         nullptr,
         json::object(),
         {{"name", 1}},
         {{"name", ""}},
         large,
         tool_of(std::string(limits::kToolNameBytesMax, 'n')),
         tool_of("good")});
    REQUIRE(page.tools.size() == 1);
    CHECK(page.tools.front().name == "good");
    CHECK(page.left_out.size() == 7);
    json largest = tool_of("l");
    const std::size_t others =
        page_of(json::array({largest})).tools.front().bytes - 1;  // without its "d"
    largest["description"] = std::string(kToolTextBytesMax - others, 'x');
    CHECK(page_of(json::array({largest})).tools.size() == 1);
    CHECK(page_of(json::array({largest})).tools.front().description.size() == kDescriptionBytesMax);
    for (const json& result : {json(1), json::object(), json{{"tools", 1}}}) {
        CHECK(read_tool_page("srv", result).has_error());
    }
    CHECK(read_tool_page("srv", {{"tools", json::array()}, {"nextCursor", std::string(5'000, 'c')}})
              .has_error());
}

TEST_CASE("a server has so many tools, and each name once", "[tools]") {
    std::vector<ServerTool> tools;
    json first = json::array();
    for (std::size_t i = 0; i < kServerToolsMax; ++i) {
        first.push_back(tool_of("t" + std::to_string(i)));
    }
    CHECK(add_tools(tools, page_of(first).tools).empty());
    CHECK(tools.size() == kServerToolsMax);
    CHECK(add_tools(tools, page_of(json::array({tool_of("more")})).tools).size() == 1);
    CHECK(tools.size() == kServerToolsMax);

    std::vector<ServerTool> alike;
    CHECK(
        add_tools(alike, page_of(json::array({tool_of("a-b"), tool_of("a.b"), tool_of("c")})).tools)
            .size() == 1);
    CHECK(alike.size() == 2);
    CHECK(alike.front().name == "a-b");

    std::vector<ServerTool> heavy;
    json large = tool_of("x");
    large["description"] = std::string(kToolTextBytesMax / 2, 'x');
    json many = json::array();
    for (int i = 0; i < 32; ++i) {
        large["name"] = "x" + std::to_string(i);
        many.push_back(large);
    }
    CHECK(add_tools(heavy, page_of(many).tools).size() == 1);
    std::size_t bytes = 0;
    for (const ServerTool& tool : heavy) {
        bytes += tool.bytes;
    }
    CHECK(bytes <= kServerToolTextBytesMax);
    CHECK(bytes > kServerToolTextBytesMax - kToolTextBytesMax);
}

TEST_CASE("text is shown without what a terminal would obey", "[tools]") {
    CHECK(plain_text("a\n\tb\xc3\xa4", 100) == "a\n\tb\xc3\xa4");
    CHECK(plain_text("\x1b[31m\x07\x7f\r", 100) == " [31m   ");
    CHECK(plain_text("\xff\xc3", 100) == "  ");
    CHECK(plain_text("ab\xc3\xa4", 3) == "ab");
    CHECK(plain_text("ab\xc3\xa4", 4) == "ab\xc3\xa4");
    CHECK(plain_text("abc", 0).empty());
}

}  // namespace
}  // namespace cellkeep::tools
