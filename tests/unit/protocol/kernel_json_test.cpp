// SPDX-License-Identifier: Apache-2.0
#include "protocol/kernel_json.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::protocol {
namespace {

using Catch::Matchers::StartsWith;
using nlohmann::json;

json example_kernel() {
    return {{"language", "toy"}, {"display_name", "Toy"}, {"argv", {"/bin/toy", "{folder}"}}};
}

/// The example with one field changed, or without it if value is discarded.
std::string with(const std::string& field, const json& value) {
    json changed = example_kernel();
    changed[field] = value;
    return changed.dump();
}

std::string without(const std::string& field) {
    json changed = example_kernel();
    changed.erase(field);
    return changed.dump();
}

}  // namespace

TEST_CASE("kernel.json is read with its defaults", "[protocol][kernel_json]") {
    const auto read = parse_kernel_json(example_kernel().dump());
    REQUIRE(read.has_value());
    CHECK(read.value().language == "toy");
    CHECK(read.value().argv == std::vector<std::string>{"/bin/toy", "{folder}"});
    CHECK(read.value().interrupt == InterruptBy::kSignal);
    CHECK(read.value().messages.empty());
    CHECK(read.value().packages.empty());
    CHECK(read.value().language_info == json::object());
}

TEST_CASE("every field of kernel.json arrives", "[protocol][kernel_json]") {
    json all = example_kernel();
    all["env"] = {{"A", "{packages}/x"}};
    all["language_info"] = {{"mimetype", "text/x"}};
    all["interrupt"] = "message";
    all["messages"] = {"comm_open", "debug_request"};
    all["programs"] = {{"node", "node"}};
    all["packages"] = "javascript";
    all["requires"] = {"/usr/bin/bash"};
    all["system_packages"] = {"nodejs"};
    all["help_links"] = json::array({{{"text", "t"}}});
    const auto read = parse_kernel_json(all.dump());
    REQUIRE(read.has_value());
    CHECK(read.value().env.at("A") == "{packages}/x");
    CHECK(read.value().interrupt == InterruptBy::kMessage);
    CHECK(read.value().messages.size() == 2);
    CHECK(read.value().programs.at("node") == "node");
    CHECK(read.value().packages == "javascript");
    CHECK(read.value().required_files.size() == 1);
    CHECK(read.value().system_packages.size() == 1);
    CHECK(read.value().help_links.size() == 1);
}

TEST_CASE("what is wrong in kernel.json is named", "[protocol][kernel_json]") {
    const auto [text, complaint] = GENERATE(table<std::string, std::string>(
        {{without("language"), "language: "},
         {without("display_name"), "display_name: "},
         {without("argv"), "argv: "},
         {with("language", ""), "language: "},
         {with("language", "Toy"), "language: "},
         {with("language", "a/b"), "language: "},
         {with("language", ".."), "language: "},
         {with("language", "9toy"), "language: "},
         {with("language", std::string(kLanguageBytesMax + 1, 'x')), "language: "},
         {with("language", 5), "language: "},
         {with("display_name", ""), "display_name: "},
         {with("display_name", json::array()), "display_name: "},
         {with("argv", json::array()), "argv: "},
         {with("argv", "toy"), "argv: "},
         {with("argv", {"toy", 5}), "argv: "},
         {with("argv", {""}), "argv: "},
         {with("argv", {std::string("a\0b", 3)}), "argv: "},
         {with("env", json::array()), "env: "},
         {with("env", {{"A=B", "x"}}), "env/A=B: "},
         {with("env", {{"", "x"}}), "env/: "},
         {with("env", {{"A", 5}}), "env/A: "},
         {with("language_info", "x"), "language_info: "},
         {with("interrupt", "kill"), "interrupt: "},
         {with("interrupt", nullptr), "interrupt: "},
         {with("messages", {"execute_request"}), "messages: "},
         {with("messages", "comm_open"), "messages: "},
         {with("programs", {{"a/b", "x"}}), "programs/a/b: "},
         {with("programs", {"node"}), "programs: "},
         {with("packages", "../python"), "packages: "},
         {with("packages", ""), "packages: "},
         {with("requires", {"relative"}), "requires: "},
         {with("requires", "/x"), "requires: "},
         {with("system_packages", {5}), "system_packages: "},
         {with("help_links", json::object()), "help_links: "},
         {with("evn", json::object()), "evn: there is no such field"},
         {"", "kernel.json: "},
         {"[]", "kernel.json: "},
         {R"({"language":"a","language":"b","display_name":"X","argv":["x"]})", "kernel.json: "}}));
    CAPTURE(text);
    const auto read = parse_kernel_json(text);
    REQUIRE(read.has_error());
    CHECK_THAT(read.error().message(), StartsWith(complaint));
}

TEST_CASE(
    "a kernel.json of kKernelJsonBytesMax is read, a longer one is not",
    "[protocol][kernel_json]") {
    std::string text = example_kernel().dump();
    text.append(kKernelJsonBytesMax - text.size(), ' ');
    CHECK(parse_kernel_json(text).has_value());
    CHECK(parse_kernel_json(text + " ").error().code() == ErrorCode::kLimitExceeded);
    CHECK(parse_kernel_json(with("language", std::string(kLanguageBytesMax, 'x'))).has_value());
}

TEST_CASE("placeholders are replaced, unknown ones refused", "[protocol][kernel_json]") {
    const std::map<std::string, std::string> values{{"folder", "/f"}, {"program:node", "/n"}};
    CHECK(expand_placeholders("", values).value().empty());
    CHECK(expand_placeholders("{folder}/{program:node}x", values).value() == "/f//nx");
    CHECK(expand_placeholders("{{x}", values).value() == "{x}");
    for (const char* wrong : {"{python}", "{", "{}", "{folder", "a{folder}{", "{ folder}"}) {
        CAPTURE(wrong);
        CHECK(expand_placeholders(wrong, values).has_error());
    }
}

}  // namespace cellkeep::protocol
