// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/swerex/orders.hpp"

#include "kernel-manager/swerex/limits.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <initializer_list>
#include <string>
#include <vector>

namespace cellkeep::swerex {
namespace {

using nlohmann::json;
using Texts = std::vector<std::string>;

template <typename Order>
void check_refused(Result<Order> (*parse)(const json&), std::initializer_list<const char*> bodies) {
    for (const char* body : bodies) {
        CAPTURE(body);
        const auto order = parse(json::parse(body));
        REQUIRE(order.has_error());
        CHECK(order.error().code() == ErrorCode::kInvalidArgument);
    }
}

TEST_CASE("a shell is started as asked", "[swerex][orders]") {
    const auto plain = parse_start_order(json::object());
    REQUIRE(plain.has_value());
    CHECK(plain.value().shell == "default");
    CHECK(plain.value().sources.empty());
    const auto order = parse_start_order(json::parse(
        R"({"session":"a","startup_source":["/x"],"startup_timeout":1.5,"session_type":"bash"})"));
    CHECK(order.value().shell == "a");
    CHECK(order.value().sources == Texts{"/x"});
    CHECK(order.value().time == std::chrono::milliseconds(1500));
    CHECK(parse_start_order({{"session_type", "zsh"}}).error().field() == kNotOffered);
    check_refused(
        parse_start_order,
        {"[]",
         R"({"session":7})",
         R"({"startup_source":"x"})",
         R"({"startup_source":[7]})",
         R"({"startup_timeout":"1"})"});
    CHECK(parse_start_order({{"session", std::string(kNameBytesMax, 'x')}}).has_value());
    CHECK(parse_start_order({{"session", std::string(kNameBytesMax + 1, 'x')}}).has_error());
    CHECK(parse_start_order({{"startup_source", Texts(kSourcesMax, "x")}}).has_value());
    CHECK(parse_start_order({{"startup_source", Texts(kSourcesMax + 1, "x")}}).has_error());
}

TEST_CASE("a command in a shell is read", "[swerex][orders]") {
    const auto order = parse_shell_order(json::parse(
        R"({"command":"ls","session":"a","timeout":null,"check":"silent","expect":["x",""],
            "is_interactive_command":true,"is_interactive_quit":false,"error_msg":"e",
            "action_type":"bash","new":1})"));
    REQUIRE(order.has_value());
    CHECK(order.value().command == "ls");
    CHECK_FALSE(order.value().time);
    CHECK(order.value().check == ShellOrder::Check::kSilent);
    CHECK(order.value().expected == Texts{"x"});
    CHECK(order.value().interactive);
    CHECK_FALSE(order.value().quits);
    const auto stop =
        parse_shell_order({{"action_type", "bash_interrupt"}, {"n_retry", 1000}, {"timeout", 0}});
    REQUIRE(stop.has_value());
    CHECK(stop.value().interrupt);
    CHECK(stop.value().interrupts == kInterruptsMax);
    CHECK(parse_shell_order({{"command", "x"}, {"timeout", 1e300}}).value().time == kTimeMax);
    check_refused(
        parse_shell_order,
        {"7",
         R"({"command":7})",
         R"({"command":"a\u0000b"})",
         R"({"check":"x"})",
         R"({"expect":"x"})",
         R"({"timeout":-1})",
         R"({"timeout":"x"})",
         R"({"is_interactive_command":1})",
         R"({"action_type":"other"})"});
    const Texts most(kExpectedMax, "x");
    CHECK(parse_shell_order({{"expect", most}}).has_value());
    CHECK(parse_shell_order({{"expect", Texts(kExpectedMax + 1, "x")}}).has_error());
    CHECK(parse_shell_order({{"expect", Texts{std::string(kExpectedBytesMax + 1, 'x')}}})
              .has_error());
    CHECK(parse_shell_order({{"command", std::string(kCommandBytesMax, 'x')}}).has_value());
    CHECK(parse_shell_order({{"command", std::string(kCommandBytesMax + 1, 'x')}}).has_error());
}

TEST_CASE("a command beside the shells is a program or a line", "[swerex][orders]") {
    const auto argv = [](const char* body) {
        const auto order = parse_execute_order(json::parse(body));
        REQUIRE(order.has_value());
        return order.value().argv;
    };
    CHECK(argv(R"({"command":["ls","-l"]})") == Texts{"ls", "-l"});
    CHECK(argv(R"({"command":"ls -l","shell":true})") == Texts{"/bin/sh", "-c", "ls -l"});
    CHECK(argv(R"({"command":"ls"})") == Texts{"ls"});
    CHECK(argv(R"({"command":["a"],"merge_output_streams":true})").back() == "a");
    CHECK(argv(R"({"command":["a"],"merge_output_streams":true})").size() == 5);
    const auto order = parse_execute_order(
        json::parse(R"({"command":"x","env":{"A":"b"},"cwd":"/tmp","timeout":2,"check":true})"));
    CHECK(order.value().env.at("A") == "b");
    CHECK(order.value().directory == "/tmp");
    CHECK(order.value().check);
    check_refused(
        parse_execute_order,
        {"[]",
         "{}",
         R"({"command":[]})",
         R"({"command":[""]})",
         R"({"command":[7]})",
         R"({"command":"a\u0000"})",
         R"({"command":"a","env":[]})",
         R"({"command":"a","env":{"A":1}})",
         R"({"command":"a","env":{"":"x"}})",
         R"({"command":"a","env":{"A=B":"x"}})",
         R"({"command":"a","cwd":7})",
         R"({"command":"a","cwd":"a\u0000"})"});
    CHECK(parse_execute_order({{"command", Texts(process::kArgumentsMax + 1, "x")}}).has_error());
}

TEST_CASE("files are named by paths", "[swerex][orders]") {
    CHECK(parse_read_order({{"path", "/a"}}).value().strict);
    CHECK_FALSE(parse_read_order({{"path", "/a"}, {"errors", "replace"}}).value().strict);
    CHECK(
        parse_read_order({{"path", "/a"}, {"encoding", "latin-1"}}).error().field() == kNotOffered);
    CHECK(parse_read_order({{"path", std::string(kPathBytesMax, 'x')}}).has_value());
    CHECK(parse_read_order({{"path", std::string(kPathBytesMax + 1, 'x')}}).has_error());
    check_refused(
        parse_read_order,
        {"[]",
         "{}",
         R"({"path":""})",
         R"({"path":7})",
         R"({"path":"a\u0000b"})",
         R"({"path":"a","encoding":7})"});
    CHECK(parse_write_order({{"path", "/a"}, {"content", "b"}}).value().content == "b");
    check_refused(
        parse_write_order,
        {"[]", "{}", R"({"path":"","content":"x"})", R"({"path":"a","content":7})"});
    CHECK(parse_closing_order(json::object()).value() == "default");
    check_refused(parse_closing_order, {"[]", R"({"session":7})"});
}

}  // namespace
}  // namespace cellkeep::swerex
