// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/node/node_manifest.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <string>

namespace cellkeep::test {
namespace {

using environments::check_node_lock;
using environments::NodeDependencies;
using environments::read_node_manifest;
using nlohmann::json;

json installed_of(const json& entry) {
    return {{"packages", {{"node_modules/beta", entry}}}};
}

TEST_CASE("a package.json asks for its dependencies", "[environments]") {
    const auto read = read_node_manifest(R"({
        "name": "web", "version": "1.0.0", "type": "module",
        "scripts": {"postinstall": "rm -rf /"},
        "dependencies": {"lodash": "^4.17.0", "@types/node": ">=18 <21 || 22.x", "any": "", "new": "latest"},
        "devDependencies": {"eslint": "github:eslint/eslint"},
        "overrides": {}, "workspaces": []})");
    REQUIRE(read.has_value());
    CHECK(
        read.value() == NodeDependencies{
                            {"lodash", "^4.17.0"},
                            {"@types/node", ">=18 <21 || 22.x"},
                            {"any", ""},
                            {"new", "latest"}});
    const std::string again = environments::node_manifest_of(read.value());
    CHECK(read_node_manifest(again).value() == read.value());
    CHECK(json::parse(again).size() == 2);
}

TEST_CASE("a package.json that leads past the registry is refused", "[environments]") {
    for (const char* range :
         {"git+https://host.example/beta.git",
          "github:someone/beta",
          "someone/beta",
          "https://host.example/beta.tgz",
          "file:../beta",
          "../beta",
          "/srv/beta",
          "link:beta",
          "workspace:*",
          "npm:alpha@1",
          "1.0.0\n",
          "$(id)"}) {
        CAPTURE(range);
        const auto refused = read_node_manifest(json{{"dependencies", {{"beta", range}}}}.dump());
        REQUIRE(refused.has_error());
        CHECK(refused.error().code() == ErrorCode::kInvalidArgument);
        CHECK(refused.error().message().find("beta is not taken") != std::string::npos);
    }
}

TEST_CASE("names that no package has are refused", "[environments]") {
    for (const std::string& name :
         {std::string("../beta"),
          std::string("-beta"),
          std::string(".beta"),
          std::string("@scope"),
          std::string("@/beta"),
          std::string("@scope/"),
          std::string("a/b"),
          std::string("a b"),
          std::string(""),
          std::string(environments::kNodeNameBytesMax + 1, 'a')}) {
        CAPTURE(name);
        const auto refused = read_node_manifest(json{{"dependencies", {{name, "1"}}}}.dump());
        REQUIRE(refused.has_error());
        CHECK(refused.error().code() == ErrorCode::kInvalidArgument);
    }
}

TEST_CASE("what is no package.json, or asks in other ways, is refused", "[environments]") {
    for (const char* text :
         {"",
          "[]",
          "{}",
          R"({"dependencies": {}})",
          R"({"dependencies": ["beta"]})",
          R"({"dependencies": {"beta": 1}})",
          R"({"dependencies": {"beta": "1"}, "optionalDependencies": {"alpha": "1"}})",
          R"({"dependencies": {"beta": "1"}, "overrides": {"alpha": "1"}})",
          R"({"dependencies": {"beta": "1"}, "workspaces": ["packages/*"]})",
          R"({"dependencies": {"beta": "1"}, "bundleDependencies": ["beta"]})"}) {
        CAPTURE(text);
        CHECK(read_node_manifest(text).has_error());
    }
    json many;
    for (std::size_t i = 0; i <= environments::kNodeDependenciesMax; ++i) {
        many["dependencies"]["a" + std::to_string(i)] = "1";
    }
    CHECK(read_node_manifest(many.dump()).error().code() == ErrorCode::kLimitExceeded);
    const std::string large(environments::kNodeManifestBytesMax + 1, ' ');
    CHECK(read_node_manifest(large).error().code() == ErrorCode::kLimitExceeded);
}

TEST_CASE("of a lock what is checked is kept, and nothing else", "[environments]") {
    const NodeDependencies wanted = {{"@s/alpha", "^1"}, {"bundled", "3"}};
    const json list = {
        {"name", "of-a-project"},
        {"dependencies", {{"old", {{"version", "file:/srv"}}}}},
        {"packages",
         {{"", {{"workspaces", {"../x"}}, {"devDependencies", {{"dev", "github:a/b"}}}}},
          {"node_modules/dev",
           {{"dev", true}, {"resolved", "git+ssh://git@host.example/dev.git#1"}}},
          {"node_modules/@s/alpha",
           {{"version", "1.0.0"},
            {"resolved", "https://registry.example/alpha.tgz"},
            {"integrity", "sha512-a"},
            {"bin", {{"alpha", "./cli.js"}, {"out", "../../x.js"}, {"../up", "cli.js"}}},
            {"dependencies", {{"beta", "^1"}, {"old", "npm:@s/beta@^0.9 || 1"}}}}},
          {"node_modules/@s/alpha/node_modules/beta",
           {{"version", "1.2.0-rc.1+b"}, {"integrity", "sha512-b"}, {"bin", {{"bash", "b.js"}}}}},
          {"node_modules/bundled", {{"version", "3.0.0"}, {"inBundle", true}}}}}};
    const auto read = check_node_lock(list.dump(), wanted);
    REQUIRE(read.has_value());
    CHECK(
        read.value().versions == std::map<std::string, std::string>{
                                     {"@s/alpha", "1.0.0"},
                                     {"@s/alpha/node_modules/beta", "1.2.0-rc.1+b"},
                                     {"bundled", "3.0.0"}});
    // Of packages that are asked for by name: another one's cannot hide a program of the system.
    CHECK(
        read.value().programs ==
        std::map<std::string, std::string>{{"alpha", "@s/alpha/./cli.js"}});
    const json text = json::parse(read.value().text);
    CHECK(text["packages"][""] == json{{"dependencies", wanted}});
    CHECK(text["packages"].size() == 4);
    CHECK_FALSE(text.contains("dependencies"));
    CHECK(check_node_lock(read.value().text, wanted).value().text == read.value().text);
}

TEST_CASE("a lock that leads past the registry is refused", "[environments]") {
    const NodeDependencies wanted = {{"beta", "1"}};
    const json good = {{"version", "1.0.0"}, {"integrity", "sha512-b"}};
    CHECK(check_node_lock(installed_of(good).dump(), wanted).has_value());
    const auto with = [&good](const char* member, json value) {
        json entry = good;
        entry[member] = std::move(value);
        return installed_of(entry);
    };
    const auto at = [&good](const char* place) { return json{{"packages", {{place, good}}}}; };
    for (const json& bad :
         {with("resolved", "git+ssh://git@host.example/beta.git#1234"),
          with("resolved", "file:../beta"),
          with("resolved", "../../../.."),
          with("link", true),
          with("link", "yes"),
          with("integrity", ""),
          with("integrity", 1),
          with("version", "../../x"),
          with("version", "file:/srv/beta"),
          with("version", ""),
          with("hasShrinkwrap", true),
          with("dependencies", {{"alpha", "https://host.example/a.tgz"}}),
          with("dependencies", {{"alpha", "someone/alpha"}}),
          with("dependencies", {{"alpha", "npm:../alpha@1"}}),
          with("dependencies", {{"alpha", "npm:alpha@file:x"}}),
          with("dependencies", {"alpha"}),
          with("optionalDependencies", {{"alpha", "github:a/b"}}),
          with("peerDependencies", {{"alpha", "file:/srv/alpha"}}),
          at("../beta"),
          at("../../../.."),
          at("node_modules/../beta"),
          at("node_modules/a/../../b"),
          at("node_modules/a/node_modules/"),
          at("node_modules/.bin"),
          at("node_modules/\x1b[31mx"),
          at("packages/beta"),
          json{{"packages", {{"node_modules/beta", "1.0.0"}}}},
          json{{"packages", {1}}},
          json{{"lockfileVersion", 1}, {"dependencies", {{"beta", {{"version", "file:/srv"}}}}}},
          json::object(),
          json::array()}) {
        CAPTURE(bad.dump());
        const auto refused = check_node_lock(bad.dump(), wanted);
        REQUIRE(refused.has_error());
        CHECK(refused.error().message().find('\x1b') == std::string::npos);
    }
    json many;
    for (std::size_t i = 0; i <= environments::kNodePackagesMax; ++i) {
        many["packages"]["node_modules/a" + std::to_string(i)] = good;
    }
    CHECK(check_node_lock(many.dump(), wanted).error().code() == ErrorCode::kLimitExceeded);
    CHECK(check_node_lock("", wanted).has_error());
    const std::string large(environments::kNodeLockBytesMax + 1, ' ');
    CHECK(check_node_lock(large, wanted).error().code() == ErrorCode::kLimitExceeded);
}

}  // namespace
}  // namespace cellkeep::test
