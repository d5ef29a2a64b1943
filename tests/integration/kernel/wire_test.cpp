// SPDX-License-Identifier: Apache-2.0
// What xeus 2.4.1 gets wrong on the wire; kernels/common/README.md maps each fault to its case
// here.
#include "tests/support/kernel_client.hpp"

#include <catch2/catch.hpp>

#include <regex>
#include <set>

using cellkeep::protocol::Channel;
using cellkeep::test::content;
using cellkeep::test::count;
using cellkeep::test::first;
using cellkeep::test::KernelClient;
using cellkeep::test::Messages;
using cellkeep::test::metadata;
using cellkeep::test::only;
using cellkeep::test::text_of;
using nlohmann::json;

TEST_CASE("starting is published exactly once, without a parent", "[kernel][wire]") {
    KernelClient kernel;
    const Messages answer = kernel.request("kernel_info_request", json::object());
    std::size_t starting = 0;
    for (const auto& message : answer) {
        if (message.header().msg_type == "status" &&
            content(message)["execution_state"] == "starting") {
            ++starting;
            CHECK(message.parent().msg_id.empty());
        }
    }
    CHECK(starting == 1);
    CHECK(kernel.read_stderr().empty());
}

TEST_CASE("kernel_info is complete and says 5.5", "[kernel][wire]") {
    KernelClient kernel;
    for (const Channel channel : {Channel::kShell, Channel::kControl}) {
        const Messages answer = kernel.request("kernel_info_request", json::object(), channel);
        CHECK(first(answer, "kernel_info_reply").channel() == channel);
        const json info = only(answer, "kernel_info_reply");
        CHECK(info["status"] == "ok");
        CHECK(info["protocol_version"] == "5.5");
        CHECK(info["supported_features"] == json{"debugger"});
        CHECK(info["language_info"]["name"] == "python");
        CHECK(info["language_info"]["file_extension"] == ".py");
        CHECK(info["language_info"]["mimetype"] == "text/x-python");
        CHECK(info["help_links"].is_array());
        CHECK(info["banner"].is_string());
        CHECK(info["implementation"].is_string());
        CHECK(info["implementation_version"].is_string());
    }
}

TEST_CASE(
    "every message has a full header, a padded date and its request as parent", "[kernel][wire]") {
    KernelClient kernel;
    (void)kernel.request("kernel_info_request", json::object());
    const std::regex date(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)");
    std::set<std::string> ids;
    std::set<std::string> sessions;
    const std::string request = kernel.start("print(1)\n2");
    for (const auto& message : kernel.receive_until_idle(request)) {
        CAPTURE(message.header_json());
        CHECK(std::regex_match(message.header().date, date));
        CHECK(message.header().version == "5.5");
        CHECK(ids.insert(message.header().msg_id).second);
        sessions.insert(message.header().session);
        CHECK(message.parent().msg_id == request);
        CHECK(message.parent().session == "test-session");
    }
    CHECK(sessions.size() == 1);
}

TEST_CASE("each process has its own session id", "[kernel][wire]") {
    KernelClient one;
    KernelClient other;
    CHECK(one.receive()->header().session != other.receive()->header().session);
}

TEST_CASE("one execute_input comes before the output, with the reply's count", "[kernel][wire]") {
    KernelClient kernel;
    (void)kernel.execute("0");
    const Messages answer = kernel.execute("print('x')\n'y'");
    const json input = only(answer, "execute_input");
    CHECK(input["code"] == "print('x')\n'y'");
    CHECK(input["execution_count"] == 2);
    CHECK(only(answer, "execute_result")["execution_count"] == 2);
    CHECK(only(answer, "execute_reply")["execution_count"] == 2);
    CHECK(answer[0].header().msg_type == "status");
    CHECK(answer[1].header().msg_type == "execute_input");
}

TEST_CASE("the execution count grows only when history is stored", "[kernel][wire]") {
    KernelClient kernel;
    CHECK(only(kernel.execute("1"), "execute_reply")["execution_count"] == 1);
    const Messages unstored = kernel.execute("2", {{"store_history", false}});
    CHECK(only(unstored, "execute_reply")["execution_count"] == 1);
    CHECK(only(unstored, "execute_result")["execution_count"] == 1);
    CHECK(only(kernel.execute("3", {{"silent", true}}), "execute_reply")["execution_count"] == 1);
    CHECK(only(kernel.execute("1 / 0"), "execute_reply")["execution_count"] == 2);
    CHECK(only(kernel.execute(""), "execute_reply")["execution_count"] == 3);
    CHECK(only(kernel.execute("4"), "execute_reply")["execution_count"] == 4);
}

TEST_CASE(
    "an error has its name, its text and its traceback in the right fields", "[kernel][wire]") {
    KernelClient kernel;
    const Messages answer = kernel.execute("raise ValueError('the text')");
    const json error = only(answer, "error");
    const json reply = only(answer, "execute_reply");
    CHECK(reply["status"] == "error");
    for (const json& each : {error, reply}) {
        CHECK(each["ename"] == "ValueError");
        CHECK(each["evalue"] == "the text");
        REQUIRE(each["traceback"].is_array());
        CHECK(each["traceback"].size() > 1);
    }
    CHECK(reply.contains("execution_count"));
}

TEST_CASE("a request that is wrong gets an error reply and idle", "[kernel][wire]") {
    KernelClient kernel;
    const auto [type, request] = GENERATE(table<std::string, json>({
        {"execute_request", json::object()},
        {"execute_request", {{"code", 5}}},
        {"execute_request", {{"code", "1"}, {"silent", "no"}}},
        {"execute_request", {{"code", "1"}, {"user_expressions", 3}}},
        {"complete_request", {{"cursor_pos", 0}}},
        {"inspect_request", {{"code", "x"}, {"detail_level", "much"}}},
        {"is_complete_request", {{"code", json::array()}}},
        {"history_request", json::object()},
        {"history_request", {{"hist_access_type", "everything"}}},
        {"history_request", {{"hist_access_type", "tail"}, {"n", "all"}}},
    }));
    CAPTURE(type, request);
    const Messages answer = kernel.request(type, request);
    const std::string reply_type = type.substr(0, type.rfind('_')) + "_reply";
    const json reply = only(answer, reply_type);
    CHECK(reply["status"] == "error");
    CHECK(reply["ename"].is_string());
    CHECK(reply["evalue"].is_string());
    CHECK(reply["traceback"].is_array());
    CHECK(only(kernel.execute("1"), "execute_reply")["status"] == "ok");
}

TEST_CASE("a code that is not valid Unicode text is answered", "[kernel][wire]") {
    KernelClient kernel;
    const json reply = only(kernel.execute("'\\ud800'"), "execute_reply");
    CHECK(reply["status"] == "ok");
}

TEST_CASE("nulls and missing fields take the specification's defaults", "[kernel][wire]") {
    KernelClient kernel;
    const std::string id = kernel.send(
        Channel::kShell,
        "execute_request",
        {{"code", "1"}, {"silent", nullptr}, {"store_history", nullptr}});
    const Messages answer = kernel.receive_until_idle(id);
    CHECK(only(answer, "execute_reply")["execution_count"] == 1);
    CHECK(
        only(
            kernel.request(
                "history_request",
                {{"hist_access_type", "range"}, {"session", 0}, {"start", 1}, {"stop", nullptr}}),
            "history_reply")["history"]
            .size() == 1);
}

TEST_CASE("an unknown request is logged and not answered", "[kernel][wire]") {
    KernelClient kernel;
    for (const Channel channel : {Channel::kShell, Channel::kControl}) {
        const Messages answer = kernel.request("create_subshell_request", json::object(), channel);
        for (const auto& message : answer) {
            CHECK(message.header().msg_type == "status");
        }
        CHECK(kernel.read_stderr().find("create_subshell_request") != std::string::npos);
    }
    CHECK(only(kernel.execute("1"), "execute_reply")["status"] == "ok");
}

TEST_CASE("shutdown is answered with its status, then the process ends with 0", "[kernel][wire]") {
    KernelClient kernel;
    (void)kernel.execute("import atexit\natexit.register(print, 'cleaned up')");
    const std::string id = kernel.send(Channel::kControl, "shutdown_request", {{"restart", true}});
    const Messages answer = kernel.receive_until_idle(id);
    CHECK(only(answer, "shutdown_reply") == json{{"status", "ok"}, {"restart", true}});
    CHECK(text_of(answer, "stdout") == "cleaned up\n");
    for (const auto& message : answer) {
        const std::string& type = message.header().msg_type;
        const bool standard = type == "status" || type == "stream" || type == "shutdown_reply";
        CHECK(standard);
    }
    CHECK_FALSE(kernel.receive().has_value());
    CHECK(kernel.wait_for_end() == 0);
}

TEST_CASE(
    "an interrupt request to an idle kernel is answered and changes nothing", "[kernel][wire]") {
    KernelClient kernel;
    const Messages answer = kernel.request("interrupt_request", json::object(), Channel::kControl);
    CHECK(only(answer, "interrupt_reply") == json{{"status", "ok"}});
    CHECK(count(answer, "interrupt") == 0);
    CHECK(only(kernel.execute("1"), "execute_reply")["status"] == "ok");
}

TEST_CASE("the reply comes after the output and before idle", "[kernel][wire]") {
    KernelClient kernel;
    const Messages answer = kernel.execute("print('x', end='')\n1");
    REQUIRE(answer.size() >= 3);
    CHECK(answer.back().header().msg_type == "status");
    CHECK(answer[answer.size() - 2].header().msg_type == "execute_reply");
    CHECK(metadata(answer[answer.size() - 2]) == json::object());
}

TEST_CASE("an input reply that no cell waits for is dropped", "[kernel][wire]") {
    KernelClient kernel;
    (void)kernel.send(Channel::kStdin, "input_reply", {{"value", "early"}});
    CHECK(only(kernel.execute("1"), "execute_reply")["status"] == "ok");
}
