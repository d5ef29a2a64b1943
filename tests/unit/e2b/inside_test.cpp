// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/envd/guest_path.hpp"
#include "kernel-manager/e2b/envd/inside_files.hpp"

#include <catch2/catch.hpp>

#include <initializer_list>
#include <string>
#include <string_view>

namespace cellkeep::e2b {
namespace {

std::string found(std::initializer_list<const char*> fields) {
    std::string text;
    for (const char* field : fields) {
        text += field;
        text += '\0';
    }
    return text;
}

TEST_CASE("paths elsewhere in the sandbox are absolute", "[e2b][path]") {
    CHECK(path_elsewhere("/tmp/a") == "/tmp/a");
    CHECK(path_elsewhere("/") == "/");
    CHECK(path_elsewhere("../..//etc/./x") == "/etc/x");
    CHECK(path_elsewhere("/home/user/../other") == "/home/other");
    CHECK(path_elsewhere("/workspaces") == "/workspaces");
    for (const char* here : {"", "a", "~", "~/a", "/home/user", "/home/user/a", "/workspace/b"}) {
        CAPTURE(here);
        CHECK_FALSE(path_elsewhere(here));
    }
    CHECK_FALSE(path_elsewhere(std::string("/tmp/a\0b", 8)));
}

TEST_CASE("what find(1) has told is described", "[e2b][inside]") {
    const std::string all =
        found({"f", "5", "640", "root", "users", "1700000000.5000000000", "", "/tmp/a\nb"}) +
        found({"l", "2", "777", "0", "0", "1700000001.0", "er", "/tmp/link"}) +
        found({"d", "60", "1777", "root", "root", "0.0", "", "/tmp"}) +
        found({"c", "0", "666", "root", "root", "0.0", "", "/dev/null"});
    std::string_view text = all;
    const auto first = parse_found(text, 1);
    REQUIRE(first.has_value());
    REQUIRE(first.value().size() == 1);
    const nlohmann::json& file = first.value()[0];
    CHECK(file["name"] == "a\nb");
    CHECK(file["path"] == "/tmp/a\nb");
    CHECK(file["type"] == "FILE_TYPE_FILE");
    CHECK(file["size"] == "5");
    CHECK(file["mode"] == 0640);
    CHECK(file["permissions"] == "-rw-r-----");
    CHECK(file["owner"] == "root");
    CHECK(file["group"] == "users");
    CHECK(file["modifiedTime"].get<std::string>().starts_with("2023-11-14T22:13:20"));
    CHECK_FALSE(file.contains("symlinkTarget"));
    const auto rest = parse_found(text, 10);
    REQUIRE(rest.has_value());
    REQUIRE(rest.value().size() == 3);
    CHECK(text.empty());
    CHECK(rest.value()[0]["symlinkTarget"] == "er");
    CHECK(rest.value()[0]["type"] == "FILE_TYPE_SYMLINK");
    CHECK(rest.value()[1]["type"] == "FILE_TYPE_DIRECTORY");
    CHECK(rest.value()[1]["mode"] == 01777);
    CHECK(rest.value()[2]["type"] == "FILE_TYPE_UNSPECIFIED");
    std::string_view none;
    CHECK(parse_found(none, 10).value().empty());
}

TEST_CASE("half of an entry is none", "[e2b][inside]") {
    for (const std::string& wrong :
         {std::string("f"),
          std::string(1, '\0'),
          found({"f", "5", "640", "root", "root", "0.0", ""}),
          found({"f", "5", "640", "root", "root", "0.0", ""}) + "/no/end",
          found({"f", "5", "640", "root", "root", "0.0", "", "/a"}) + "x"}) {
        std::string_view text = wrong;
        CHECK(parse_found(text, 10).has_error());
    }
    // A guest can tell nonsense; it is nobody's number then.
    const std::string odd = found({"", "x", "9", "", "", "y", "", ""});
    std::string_view text = odd;
    const auto told = parse_found(text, 1);
    REQUIRE(told.has_value());
    CHECK(told.value()[0]["mode"] == 0);
}

TEST_CASE("files that pass through the workspace have names of their own", "[e2b][inside]") {
    const auto one = passing_name();
    const auto other = passing_name();
    REQUIRE(one.has_value());
    CHECK(one.value().starts_with(".e2b-"));
    CHECK(one.value() != other.value());
}

}  // namespace
}  // namespace cellkeep::e2b
