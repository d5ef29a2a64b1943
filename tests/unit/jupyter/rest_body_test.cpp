// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/rest/rest_body.hpp"

#include "protocol/limits.hpp"

#include <catch2/catch.hpp>

#include <set>

namespace cellkeep::jupyter {
namespace {

using nlohmann::json;

TEST_CASE("a blank body counts as no body", "[rest][body]") {
    for (const char* body : {"", " ", "\r\n\t "}) {
        CAPTURE(body);
        const auto parsed = parse_body(body);
        REQUIRE(parsed.has_value());
        CHECK_FALSE(parsed.value().has_value());
    }
    CHECK(parse_body(" {} ").value() == json::object());
}

TEST_CASE("a body that is not a JSON object is refused", "[rest][body]") {
    for (const char* body :
         {"{",
          "}",
          "{\"a\":}",
          "[]",
          "null",
          "\"x\"",
          "1",
          "true",
          "{'a':1}",
          "{}{}",
          "\xff",
          "a"}) {
        CAPTURE(body);
        const auto parsed = parse_body(body);
        REQUIRE(parsed.has_error());
        CHECK(parsed.error().code() == ErrorCode::kInvalidArgument);
    }
}

TEST_CASE("limits::kHttpBodyJsonValuesMax bounds the values of a body", "[rest][body][limits]") {
    std::string text = R"({"a":[1)";  // three values
    for (std::size_t values = 3; values < limits::kHttpBodyJsonValuesMax; ++values) {
        text += ",1";
    }
    CHECK(parse_body(text + "]}").has_value());
    CHECK(parse_body(text + ",1]}").has_error());
}

TEST_CASE("a missing or null field is empty", "[rest][body]") {
    CHECK(text_field({{"name", nullptr}}, "name").value().empty());
    CHECK(text_field(json::object(), "name").value().empty());
    CHECK(object_field({{"env", nullptr}}, "env").value() == json::object());
    const auto order = read_kernel_order(
        {{"name", nullptr}, {"path", nullptr}, {"env", nullptr}, {"unknown", {1, 2}}});
    REQUIRE(order.has_value());
    CHECK(order.value().name.empty());
    CHECK(order.value().env.empty());
}

TEST_CASE("a text field may have kJupyterFieldBytesMax bytes and not one more", "[rest][body]") {
    const std::string most(limits::kJupyterFieldBytesMax, 'x');
    CHECK(text_field({{"path", most}}, "path").value() == most);
    CHECK(text_field({{"path", most + "x"}}, "path").has_error());
}

TEST_CASE("a kernel order with a wrong type is refused", "[rest][body]") {
    for (const char* text :
         {R"({"name":1})",
          R"({"name":[]})",
          R"({"name":{}})",
          R"({"name":true})",
          R"({"path":1})",
          R"({"env":[]})",
          R"({"env":"A=B"})",
          R"({"kernel_id":1})",
          R"({"kernel_id":"x"})",
          R"({"kernel_id":"../../etc/passwd"})"}) {
        CAPTURE(text);
        CHECK(read_kernel_order(json::parse(text)).has_error());
    }
}

TEST_CASE("a kernel order is read", "[rest][body]") {
    const auto order = read_kernel_order(
        {{"name", "python3"},
         {"path", "a/b"},
         {"kernel_id", "01234567-89ab-4DEF-8123-456789abcdef"},
         {"env", {{"KERNEL_X", "1"}}}});
    REQUIRE(order.has_value());
    CHECK(order.value().name == "python3");
    CHECK(order.value().path == "a/b");
    CHECK(order.value().kernel_id == "01234567-89ab-4DEF-8123-456789abcdef");
    CHECK(order.value().env["KERNEL_X"] == "1");
}

TEST_CASE("only KERNEL_* and allowed variables are passed", "[rest][body]") {
    const auto chosen = choose_environment(
        {{"KERNEL_USERNAME", "ada"},
         {"KERNEL_", "odd but harmless"},
         {"TZ", "UTC"},
         {"PATH", "/evil"},
         {"kernel_x", "no"},
         {"KERNEL_A=B", "no"},
         {"KERNEL_A\nB", "no"},
         {"", "no"}},
        {"TZ", "HOME"});
    REQUIRE(chosen.has_value());
    std::set<std::string> passed;
    for (const auto& [name, value] : chosen.value().passed) {
        passed.insert(name);
    }
    CHECK(passed == std::set<std::string>{"KERNEL_", "KERNEL_USERNAME", "TZ"});
    CHECK(chosen.value().dropped_count == 5);
    for (const std::string& name : chosen.value().dropped) {
        CHECK(name.find('\n') == std::string::npos);
    }
}

TEST_CASE("the log of dropped variables is bounded", "[rest][body]") {
    json env = json::object();
    for (int i = 0; i < 1000; ++i) {
        env["X" + std::to_string(i) + std::string(1000, 'x')] = "v";
    }
    const auto chosen = choose_environment(env, {});
    REQUIRE(chosen.has_value());
    CHECK(chosen.value().dropped_count == 1000);
    CHECK(chosen.value().dropped.size() == 16);
    CHECK(chosen.value().dropped.front().size() == 64);
}

TEST_CASE("a variable that is not text without NUL is refused", "[rest][body]") {
    for (const json& value :
         {json(1), json(nullptr), json(true), json::array(), json::object(), json(1.5)}) {
        CHECK(choose_environment({{"KERNEL_X", value}}, {}).has_error());
    }
    CHECK(choose_environment({{"KERNEL_X", std::string("a\0b", 3)}}, {}).has_error());
    // A dropped variable is not checked.
    CHECK(choose_environment({{"OTHER", 1}}, {}).has_value());
}

TEST_CASE("a relative path is a directory of the workspace", "[rest][body]") {
    const auto [path, directory] = GENERATE(table<std::string, std::string>({
        {"", ""},
        {"a", "a"},
        {"a/b", "a/b"},
        {"a/b/", "a/b"},
        {"./a", "a"},
        {"a//b/./c", "a/b/c"},
        {".", ""},
        {"a/x.ipynb", "a"},
        {"x.ipynb", ""},
        {"dir with spaces/é", "dir with spaces/é"},
    }));
    CAPTURE(path);
    const auto mapped = directory_in_workspace(path);
    REQUIRE(mapped.has_value());
    CHECK(mapped.value() == directory);
}

TEST_CASE("a path of the client's host means nothing", "[rest][body]") {
    for (const char* path :
         {"/", "/home/ada", "//x", "~", "~/work", "C:\\Users\\ada", "\\\\server\\share", "/../x"}) {
        CAPTURE(path);
        CHECK(directory_in_workspace(path).value().empty());
    }
}

TEST_CASE("a path out of the workspace is refused", "[rest][body]") {
    const std::string nul("a\0b", 3);
    for (const std::string& path :
         {std::string(".."),
          std::string("../x"),
          std::string("a/../../x"),
          std::string("a/.."),
          std::string("a/../b"),
          nul,
          std::string(256, 'x'),
          std::string("a/") + std::string(300, 'y') + "/z"}) {
        CAPTURE(path);
        CHECK(directory_in_workspace(path).has_error());
    }
}

TEST_CASE("a UUID is five groups of hexadecimal digits", "[rest][body]") {
    CHECK(is_uuid("01234567-89ab-cdef-0123-456789abcdef"));
    CHECK(is_uuid("01234567-89AB-CDEF-0123-456789ABCDEF"));
    for (const char* text :
         {"",
          "x",
          "ses_0123456789abcdef01234567",
          "01234567-89ab-cdef-0123-456789abcde",
          "01234567-89ab-cdef-0123-456789abcdef0",
          "01234567-89ab-cdef-0123-456789abcdeg",
          "0123456789ab-cdef-0123-456789abcdef-",
          "{1234567-89ab-cdef-0123-456789abcde}",
          "01234567_89ab_cdef_0123_456789abcdef"}) {
        CAPTURE(text);
        CHECK_FALSE(is_uuid(text));
    }
    const auto one = make_uuid();
    const auto two = make_uuid();
    REQUIRE(one.has_value());
    CHECK(is_uuid(one.value()));
    CHECK(one.value()[14] == '4');
    CHECK(one.value() != two.value());
}

}  // namespace
}  // namespace cellkeep::jupyter
