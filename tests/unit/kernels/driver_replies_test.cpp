// SPDX-License-Identifier: Apache-2.0
#include "kernels/driver/reply_contents.hpp"

#include <catch2/catch.hpp>

namespace cellkeep::kernels::driver {

using nlohmann::json;

TEST_CASE("a cursor is clamped to the code, in code points", "[kernel][driver]") {
    CHECK(clamp_cursor("a\xC3\xA9z", 2) == 2);
    CHECK(clamp_cursor("a\xC3\xA9z", 9) == 3);
    CHECK(clamp_cursor("a\xC3\xA9z", -1) == 3);
    CHECK(clamp_cursor("", 1) == 0);
}

TEST_CASE("an execution that succeeds has no error", "[kernel][driver]") {
    const Reply reply = make_execute_reply({{"status", "ok"}, {"exit_code", 255}});
    CHECK(reply.content["status"] == "ok");
    CHECK_FALSE(reply.content.contains("ename"));
    CHECK(reply.content["payload"] == json::array());
    CHECK(reply.metadata == json{{"cellkeep", {{"exit_code", 255}}}});
}

TEST_CASE("an execution that fails names its error and its place", "[kernel][driver]") {
    const Reply reply = make_execute_reply(
        {{"status", "error"},
         {"name", "E"},
         {"message", "m"},
         {"traceback", {"one", 2, "three"}},
         {"kind", "syntax"},
         {"line", 3}});
    CHECK(reply.content["status"] == "error");
    CHECK(reply.content["ename"] == "E");
    CHECK(reply.content["evalue"] == "m");
    CHECK(reply.content["traceback"] == json({"one", "three"}));
    CHECK(
        reply.metadata["cellkeep"]["error"] ==
        json{{"kind", "syntax"}, {"line", 3}, {"column", nullptr}});
}

TEST_CASE("exit codes out of range and fields of wrong types are left out", "[kernel][driver]") {
    for (const json& code : {json(-1), json(256), json("1"), json(1.5), json(nullptr)}) {
        CAPTURE(code);
        CHECK(make_execute_reply({{"exit_code", code}}).metadata.empty());
    }
    const Reply reply = make_execute_reply(
        {{"payload", "none"}, {"user_expressions", json::array()}, {"metadata", 4}});
    CHECK(reply.content["payload"] == json::array());
    CHECK(reply.content["user_expressions"] == json::object());
    CHECK(reply.metadata.empty());
}

TEST_CASE("a driver at fault fails the execution", "[kernel][driver]") {
    const Reply reply = make_fault_reply({"DriverError", "why", {"DriverError: why"}});
    CHECK(reply.content["status"] == "error");
    CHECK(reply.content["evalue"] == "why");
    CHECK(reply.content["traceback"] == json({"DriverError: why"}));
    CHECK(reply.metadata["cellkeep"]["error"]["kind"] == "driver");
}

TEST_CASE("a completion without an answer has no matches", "[kernel][driver]") {
    for (const Done& done : {Done(), Done(json{{"status", "error"}})}) {
        const json content = make_complete_reply(done, 4);
        CHECK(content["status"] == "ok");
        CHECK(content["matches"].empty());
        CHECK(content["cursor_start"] == 4);
        CHECK(content["cursor_end"] == 4);
    }
}

TEST_CASE("the types of matches get the range that they replace", "[kernel][driver]") {
    const json content = make_complete_reply(
        Done(json{
            {"matches", {"ab"}},
            {"start", 1},
            {"end", 2},
            {"types", {json{{"text", "ab"}, {"type", "function"}}, json{{"type", "lost"}}, 3}}}),
        2);
    CHECK(content["matches"] == json({"ab"}));
    const json& types = content["metadata"]["_jupyter_types_experimental"];
    REQUIRE(types.size() == 1);
    CHECK(types[0] == json{{"text", "ab"}, {"type", "function"}, {"start", 1}, {"end", 2}});
}

TEST_CASE("an inspection finds only what a driver says it has found", "[kernel][driver]") {
    CHECK(make_inspect_reply(Done())["found"] == false);
    CHECK(make_inspect_reply(Done(json{{"status", "error"}, {"found", true}}))["found"] == false);
    CHECK(make_inspect_reply(Done(json{{"found", 1}}))["found"] == false);
    const json content =
        make_inspect_reply(Done(json{{"found", true}, {"data", {{"text/plain", "doc"}}}}));
    CHECK(content["found"] == true);
    CHECK(content["data"]["text/plain"] == "doc");
}

TEST_CASE("the completeness of code is one of the specification's words", "[kernel][driver]") {
    CHECK(make_is_complete_reply(Done()) == json{{"status", "unknown"}});
    CHECK(make_is_complete_reply(Done(json{{"status", "error"}})) == json{{"status", "unknown"}});
    CHECK(make_is_complete_reply(Done(json{{"status", "invalid"}}))["status"] == "invalid");
    CHECK(make_is_complete_reply(Done(json{{"status", "complete"}}))["status"] == "complete");
    CHECK(
        make_is_complete_reply(Done(json{{"status", "incomplete"}, {"indent", "  "}})) ==
        json{{"status", "incomplete"}, {"indent", "  "}});
}

TEST_CASE("the ready event completes the language's own description", "[kernel][driver]") {
    protocol::KernelJson about;
    about.language = "lang";
    about.display_name = "Lang";
    about.language_info = {{"file_extension", ".l"}, {"mimetype", "text/l"}};
    about.help_links = json::array({{{"text", "t"}, {"url", "u"}}});
    const json ready{{"version", "1.2"}, {"language_info", {{"mimetype", "text/x-l"}}}};
    const json info = make_kernel_info(about, ready);
    CHECK(info["language_info"]["name"] == "lang");
    CHECK(info["language_info"]["file_extension"] == ".l");
    CHECK(info["language_info"]["mimetype"] == "text/x-l");
    CHECK(info["language_info"]["version"] == "1.2");
    CHECK(info["banner"] == "Lang 1.2");
    CHECK(info["help_links"] == about.help_links);
    CHECK(info["debugger"] == false);

    about.messages = {"debug_request"};
    CHECK(answers_message(about, "debug_request"));
    CHECK_FALSE(answers_message(about, "debug"));
    CHECK(make_kernel_info(about, ready)["supported_features"] == json({"debugger"}));
}

}  // namespace cellkeep::kernels::driver
