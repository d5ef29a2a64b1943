// SPDX-License-Identifier: Apache-2.0
#include "sandbox/workspace/workspace.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::sandbox {

TEST_CASE("a relative path without tricks is a workspace path") {
    const auto path = GENERATE(
        as<std::string>(),
        "",
        "a",
        "a/b/c.csv",
        ".hidden",
        "..data",
        "a..b/c",
        "...",
        "with space",
        "gr\xc3\xbc\xc3\x9f",
        "-rf",
        "~",
        "a:b",
        "\\",
        "\n");
    CHECK(parse_workspace_path(path).value() == path);
    CHECK(parse_workspace_path(std::string(255, 'x')).has_value());
}

TEST_CASE("every other path is refused") {
    const auto path = GENERATE(
        as<std::string>(),
        "/",
        "/etc/passwd",
        "//x",
        "a/",
        "a//b",
        ".",
        "..",
        "./a",
        "../a",
        "a/.",
        "a/..",
        "a/../b",
        "a/./b",
        "../../etc/shadow",
        "a/b/",
        std::string("a\0b", 3),
        std::string("\0", 1),
        std::string(256, 'x'),
        "a/" + std::string(256, 'x'));
    INFO(path);
    const auto parsed = parse_workspace_path(path);
    REQUIRE(parsed.has_error());
    CHECK(parsed.error().code() == ErrorCode::kInvalidArgument);
}

TEST_CASE("a path has at most 4095 bytes") {
    std::string path;
    while (path.size() < 4000) {
        path += "component/";
    }
    path += std::string(4095 - path.size(), 'x');
    REQUIRE(path.size() == 4095);
    CHECK(parse_workspace_path(path).has_value());
    CHECK(parse_workspace_path(path + "x").has_error());
}

}  // namespace cellkeep::sandbox
