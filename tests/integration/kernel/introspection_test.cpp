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

TEST_CASE("completions say their types and where they go", "[kernel][complete]") {
    KernelClient kernel;
    (void)kernel.execute("variable_one = 'text'");
    const json reply = only(
        kernel.request("complete_request", {{"code", "'😀'; variab"}, {"cursor_pos", 11}}),
        "complete_reply");
    const json types = reply["metadata"]["_jupyter_types_experimental"];
    REQUIRE(types.size() == reply["matches"].size());
    REQUIRE_FALSE(types.empty());
    CHECK(types[0]["text"] == reply["matches"][0]);
    CHECK(types[0]["start"] == 5);
    CHECK(types[0]["end"] == 11);
    CHECK(types[0]["type"].is_string());
    CHECK(types[0]["signature"].is_string());
}

TEST_CASE("inspection counts in code points and knows two levels of detail", "[kernel][inspect]") {
    KernelClient kernel;
    (void)kernel.execute("def documented():\n    \"\"\"Says what it does.\"\"\"\n    return 12321");
    const auto ask = [&](int cursor, int level) {
        return only(
            kernel.request(
                "inspect_request",
                {{"code", "'😀😀é'; documented("}, {"cursor_pos", cursor}, {"detail_level", level}}),
            "inspect_reply");
    };
    for (const int cursor : {7, 12, 18}) {
        CAPTURE(cursor);
        CHECK(ask(cursor, 0)["found"] == true);
    }
    CHECK(ask(3, 0)["found"] == false);
    const std::string brief = ask(12, 0)["data"]["text/plain"];
    const std::string full = ask(12, 1)["data"]["text/plain"];
    CHECK(brief.find("Says what it does.") != std::string::npos);
    CHECK(brief.find("12321") == std::string::npos);
    CHECK(full.find("12321") != std::string::npos);
    CHECK(ask(12, 0)["data"].contains("text/html"));
}

TEST_CASE("is_complete tells the four cases apart", "[kernel][is_complete]") {
    KernelClient kernel;
    const auto ask = [&](const char* code) {
        return only(kernel.request("is_complete_request", {{"code", code}}), "is_complete_reply");
    };
    CHECK(ask("x = 1") == json{{"status", "complete"}});
    CHECK(ask("for i in x:") == json{{"status", "incomplete"}, {"indent", "    "}});
    CHECK(
        ask("if x:\n    if y:\n        z") ==
        json{{"status", "incomplete"}, {"indent", "        "}});
    CHECK(ask("f(")["status"] == "incomplete");
    CHECK(ask("'''open")["status"] == "incomplete");
    CHECK(ask("%%time") == json{{"status", "incomplete"}, {"indent", ""}});
    CHECK(ask("") == json{{"status", "complete"}});
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
    (void)kernel.execute("1 + 1");
    const auto search = [&](const json& more) {
        json request{{"hist_access_type", "search"}, {"pattern", "1 ?*"}};
        request.update(more);
        return history(kernel, request);
    };
    CHECK(search(json::object()) == json{{1, 1, "1 + 1"}, {1, 5, "1 + 1"}});
    CHECK(search({{"unique", true}}) == json::array({{1, 5, "1 + 1"}}));
    CHECK(search({{"n", 1}}) == json::array({{1, 5, "1 + 1"}}));
    CHECK(search({{"n", 1}, {"output", true}}) == json::array({{1, 5, {"1 + 1", "2"}}}));
    CHECK(
        history(kernel, {{"hist_access_type", "search"}, {"pattern", "nothing*"}}) ==
        json::array());
    CHECK(
        history(kernel, {{"hist_access_type", "tail"}, {"n", 3}, {"raw", false}})[0][2] ==
        "get_ipython().run_line_magic('time', 'pass')");
}
