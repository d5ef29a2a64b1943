// SPDX-License-Identifier: Apache-2.0
#include "tests/support/kernel_client.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using cellkeep::test::KernelClient;
using cellkeep::test::only;
using nlohmann::json;

namespace {

bool offers(const json& reply, std::string_view match) {
    const json& all = reply["matches"];
    return std::find(all.begin(), all.end(), json(match)) != all.end();
}

json history(KernelClient& kernel, const json& request) {
    return only(kernel.request("history_request", request), "history_reply")["history"];
}

}  // namespace

TEST_CASE("completion counts the cursor in code points", "[kernel][complete]") {
    KernelClient kernel;
    (void)kernel.execute("variable_one = 'text'");
    const json plain = only(
        kernel.request("complete_request", {{"code", "variab"}, {"cursor_pos", 6}}),
        "complete_reply");
    CHECK(plain["status"] == "ok");
    CHECK(offers(plain, "variable_one"));
    CHECK(plain["cursor_start"] == 0);
    CHECK(plain["cursor_end"] == 6);

    const std::string after_emoji = "'😀é'; variab";
    const json shifted = only(
        kernel.request("complete_request", {{"code", after_emoji}, {"cursor_pos", 12}}),
        "complete_reply");
    CHECK(offers(shifted, "variable_one"));
    CHECK(shifted["cursor_start"] == 6);
    CHECK(shifted["cursor_end"] == 12);
}

TEST_CASE("attributes are completed; nothing to offer is an ok answer", "[kernel][complete]") {
    KernelClient kernel;
    (void)kernel.execute("text = 'abc'");
    CHECK(offers(
        only(
            kernel.request("complete_request", {{"code", "text.upp"}, {"cursor_pos", 8}}),
            "complete_reply"),
        ".upper"));
    const json none = only(
        kernel.request("complete_request", {{"code", "zzzzqq"}, {"cursor_pos", 6}}),
        "complete_reply");
    CHECK(none["status"] == "ok");
    CHECK(none["matches"] == json::array());
    const json outside = only(
        kernel.request("complete_request", {{"code", "te"}, {"cursor_pos", 99}}), "complete_reply");
    CHECK(outside["status"] == "ok");
}

TEST_CASE("inspection finds the name at the cursor", "[kernel][inspect]") {
    KernelClient kernel;
    (void)kernel.execute("def documented():\n    '''Says what it does.'''\n    return 1");
    const json found = only(
        kernel.request(
            "inspect_request", {{"code", "documented("}, {"cursor_pos", 4}, {"detail_level", 1}}),
        "inspect_reply");
    CHECK(found["found"] == true);
    CHECK(
        found["data"]["text/plain"].get<std::string>().find("Says what it does") !=
        std::string::npos);
    const json missing = only(
        kernel.request("inspect_request", {{"code", "nothing_here"}, {"cursor_pos", 3}}),
        "inspect_reply");
    CHECK(missing["status"] == "ok");
    CHECK(missing["found"] == false);
    CHECK(missing["data"] == json::object());
}

TEST_CASE("is_complete tells the four cases apart", "[kernel][is_complete]") {
    KernelClient kernel;
    const auto ask = [&](const char* code) {
        return only(kernel.request("is_complete_request", {{"code", code}}), "is_complete_reply");
    };
    CHECK(ask("x = 1") == json{{"status", "complete"}});
    CHECK(ask("for i in x:") == json{{"status", "incomplete"}, {"indent", "    "}});
    CHECK(ask("f(")["status"] == "incomplete");
    CHECK(ask("x = = 1") == json{{"status", "invalid"}});
}

TEST_CASE("history has true sessions, line numbers and outputs", "[kernel][history]") {
    KernelClient kernel;
    (void)kernel.execute("1 + 1");
    (void)kernel.execute("exit");
    (void)kernel.execute("%time pass");
    (void)kernel.execute("'not stored'", {{"store_history", false}});
    (void)kernel.execute("x = 3");

    const json all = history(
        kernel, {{"hist_access_type", "range"}, {"session", 0}, {"start", 1}, {"raw", true}});
    CHECK(all == json{{1, 1, "1 + 1"}, {1, 2, "exit"}, {1, 3, "%time pass"}, {1, 4, "x = 3"}});
    CHECK(
        history(
            kernel,
            {{"hist_access_type", "range"},
             {"session", 1},
             {"start", 1},
             {"stop", 2},
             {"output", true}}) == json::array({{1, 1, {"1 + 1", "2"}}}));
    CHECK(
        history(kernel, {{"hist_access_type", "tail"}, {"n", 2}}) ==
        json{{1, 3, "%time pass"}, {1, 4, "x = 3"}});
    CHECK(
        history(kernel, {{"hist_access_type", "search"}, {"pattern", "*+*"}, {"n", 5}}) ==
        json::array({{1, 1, "1 + 1"}}));
    CHECK(
        history(kernel, {{"hist_access_type", "search"}, {"pattern", "nothing*"}}) ==
        json::array());
    CHECK(
        history(kernel, {{"hist_access_type", "tail"}, {"n", 2}, {"raw", false}})[0][2] ==
        "get_ipython().run_line_magic('time', 'pass')");
}
