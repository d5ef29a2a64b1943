// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/tools/config/server_entry.hpp"

#include "kernel-manager/tools/config/variables.hpp"
#include "kernel-manager/tools/connection/program.hpp"
#include "kernel-manager/tools/limits.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::tools {
namespace {

using nlohmann::json;

std::optional<std::string> find_variable(const std::string& name) {
    return name == "KEY" ? std::optional<std::string>("the value") : std::nullopt;
}

Result<std::vector<ServerEntry>> read(const json& servers) {
    return parse_servers(json{{"mcpServers", servers}}.dump(), find_variable);
}

ServerEntry read_one(const json& entry) {
    auto entries = read({{"one", entry}});
    REQUIRE(entries.has_value());
    REQUIRE(entries.value().size() == 1);
    return std::move(entries).value().front();
}

TEST_CASE("a program with its arguments and variables", "[tools]") {
    const ServerEntry entry = read_one(
        {{"command", "npx"},
         {"args", {"-y", "${KEY}"}},
         {"env", {{"API_KEY", "a ${KEY}"}, {"MODE", "${NONE:-plain text}"}}},
         {"cwd", "/srv"},
         {"alwaysAllow", {"x"}}});
    const auto& place = std::get<ProgramPlace>(entry.place);
    CHECK(place.command == "npx");
    CHECK(place.arguments == std::vector<std::string>{"-y", "the value"});
    CHECK(place.variables == NamedTexts{{"API_KEY", "a the value"}, {"MODE", "plain text"}});
    CHECK(place.directory == "/srv");
    CHECK(entry.patience == kCallPatience);
    CHECK(entry.secrets == std::vector<std::string>{"a the value"});
    CHECK(entry.rules.otherwise == governance::Verdict::kAsk);
}

TEST_CASE("a server over HTTP with its headers", "[tools]") {
    const ServerEntry entry = read_one(
        {{"type", "http"},
         {"url", "https://Example.org/mcp?x=1#there"},
         {"headers", {{"Authorization", "Bearer abcdefgh"}, {"X-Short", "1"}}},
         {"cellkeep", {{"default", "allow"}, {"timeout_s", 5}}}});
    const auto& place = std::get<UrlPlace>(entry.place);
    CHECK(place.tls);
    CHECK(place.authority.host.text == "example.org");
    CHECK(place.authority.port == 443);
    CHECK(place.target == "/mcp?x=1");
    CHECK(entry.secrets == std::vector<std::string>{"abcdefgh"});
    CHECK(entry.patience == std::chrono::seconds(5));
    CHECK(entry.rules.otherwise == governance::Verdict::kAllow);
    CHECK(std::get<UrlPlace>(read_one({{"url", "http://[::1]:81"}}).place).authority.port == 81);
}

TEST_CASE("the identity is that of what runs, not of its secrets", "[tools]") {
    const json base = {{"command", "a"}, {"args", {"b"}}, {"env", {{"KEY", "1"}}}};
    const std::string identity = read_one(base).identity;
    json other = base;
    other["env"]["KEY"] = "2";
    CHECK(read_one(other).identity == identity);
    other["args"] = {"c"};
    CHECK(read_one(other).identity != identity);
    other = base;
    other["cellkeep"]["reviewed"] = json::object();
    CHECK(read_one(other).identity != identity);
    CHECK(read_one({{"url", "http://h/a"}}).identity != read_one({{"url", "http://h/b"}}).identity);
}

TEST_CASE("a name becomes one that code can write", "[tools]") {
    CHECK(word_of("github") == "github");
    CHECK(word_of("my-server.v2") == "my_server_v2");
    CHECK(word_of("2nd") == "_2nd");
    CHECK(word_of("") == "_");
    CHECK(word_of("\xc3\xa4") == "__");
    CHECK(read({{"a", {{"command", "x"}, {"disabled", true}}}}).value().empty());
}

TEST_CASE("what is no entry is refused and no value is told", "[tools]") {
    const std::string secret = "ghp_secret";
    const std::vector<json> wrong = {
        1,
        json::object(),
        {{"command", ""}},
        {{"command", 1}},
        {{"command", "x"}, {"url", "http://h"}},
        {{"command", "x"}, {"args", secret}},
        {{"command", "x"}, {"args", {1, secret}}},
        {{"command", "x"}, {"env", {secret}}},
        {{"command", "x"}, {"env", {{"A=B", secret}}}},
        {{"command", "x"}, {"env", {{"A", secret + "${NONE}"}}}},
        {{"command", "x"}, {"env", {{"A", secret + "${"}}}},
        {{"command", "x"}, {"env", {{"A", std::string("a\0b", 3)}}}},
        {{"command", "x"}, {"cellkeep", 1}},
        {{"command", "x"}, {"cellkeep", {{"timeout_s", 0}}}},
        {{"command", "x"}, {"cellkeep", {{"timeout_s", 601}}}},
        {{"command", "x"}, {"cellkeep", {{"timeout", 5}}}},
        {{"url", "h"}},
        {{"url", "ftp://h"}},
        {{"url", "http://"}},
        {{"url", "http://h:0/"}},
        {{"url", "http://user@h/"}},
        {{"url", "http://h/a b"}},
        {{"url", "http://h/\r\nX: y"}},
        {{"url", "http://h"}, {"type", "sse"}},
        {{"url", "http://h"}, {"headers", {{"A b", secret}}}},
        {{"url", "http://h"}, {"headers", {{"A", secret + "\r\nB: c"}}}},
        {{"url", "http://h"}, {"headers", {{"", secret}}}}};
    for (const json& entry : wrong) {
        CAPTURE(entry.dump());
        const auto entries = read({{"one", entry}});
        REQUIRE(entries.has_error());
        CHECK(entries.error().code() == ErrorCode::kInvalidArgument);
        CHECK(entries.error().message().find("mcpServers/one") != std::string::npos);
        CHECK(entries.error().message().find(secret) == std::string::npos);
    }
}

TEST_CASE("servers that code could not tell apart are refused", "[tools]") {
    const json entry = {{"command", "x"}};
    CHECK(read({{"a-b", entry}, {"a_c", entry}}).has_value());
    CHECK(read({{"a-b", entry}, {"a_b", entry}}).has_error());
    for (const char* taken : {"list", "search", "call", ""}) {
        CAPTURE(taken);
        CHECK(read({{taken, entry}}).has_error());
    }
    for (const char* text :
         {"",
          "[]",
          "{}",
          R"({"mcpServers": []})",
          R"({"servers": {}})",
          R"({"mcpServers": {"a": {"command": "x", "command": "y"}}})"}) {
        CAPTURE(text);
        CHECK(parse_servers(text, find_variable).has_error());
    }
}

TEST_CASE("a file has so many servers and a server so many texts", "[tools]") {
    json servers = json::object();
    for (std::size_t i = 0; i < kServersMax; ++i) {
        servers["s" + std::to_string(i)] = {{"command", "x"}};
    }
    CHECK(read(servers).has_value());
    servers["more"] = {{"command", "x"}};
    CHECK(read(servers).has_error());
    json entry = {{"command", "x"}, {"args", json::array()}};
    for (std::size_t i = 0; i < kServerTextsMax; ++i) {
        entry["args"].push_back("a");
    }
    CHECK(read({{"a", entry}}).has_value());
    entry["args"].push_back("a");
    CHECK(read({{"a", entry}}).has_error());
    CHECK(read({{"a", {{"command", std::string(kServerTextBytesMax, 'c')}}}}).has_value());
    CHECK(read({{"a", {{"command", std::string(kServerTextBytesMax + 1, 'c')}}}}).has_error());
    CHECK(read({{std::string(kServerNameBytesMax, 'n'), {{"command", "x"}}}}).has_value());
    CHECK(read({{std::string(kServerNameBytesMax + 1, 'n'), {{"command", "x"}}}}).has_error());
}

TEST_CASE("a program gets few variables of this process", "[tools]") {
    ProgramPlace place;
    place.variables = {{"OWN", "1"}, {"PATH", "/only"}};
    const std::vector<std::string> variables = environment_of(place);
    CHECK(std::count(variables.begin(), variables.end(), "OWN=1") == 1);
    CHECK(std::count(variables.begin(), variables.end(), "PATH=/only") == 1);
    for (const std::string& variable : variables) {
        const std::string name = variable.substr(0, variable.find('='));
        const bool known =
            name == "OWN" ||
            std::find(kInheritedVariables.begin(), kInheritedVariables.end(), name) !=
                kInheritedVariables.end();
        CAPTURE(name);
        CHECK(known);
    }
}

}  // namespace
}  // namespace cellkeep::tools
