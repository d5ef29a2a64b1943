// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/kernel/debugger_client.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <vector>

using cellkeep::protocol::Channel;
using cellkeep::test::count;
using cellkeep::test::Debugger;
using cellkeep::test::KernelClient;
using cellkeep::test::Messages;
using cellkeep::test::only;
using nlohmann::json;

TEST_CASE("a request that is no debug request gets one failed response", "[kernel][debugger]") {
    KernelClient kernel;
    Debugger debugger(kernel);
    const auto refuse = [&](const json& request) {
        const Messages answer = kernel.request("debug_request", request, Channel::kControl);
        INFO(request.dump());
        const json response = only(answer, "debug_reply");
        CHECK(response["type"] == "response");
        CHECK(response["success"] == false);
        CHECK(response["message"].get<std::string>().size() > 5);
        CHECK(count(answer, "status") >= 2);
    };
    for (const json& request : std::vector<json>{
             json::object(),
             {{"seq", 1}},
             {{"seq", "1"}, {"command", "debugInfo"}},
             {{"seq", true}, {"command", "debugInfo"}},
             {{"seq", 1.5}, {"command", "debugInfo"}},
             {{"seq", 1}, {"command", 3}},
             {{"seq", 1}, {"command", "debugInfo"}, {"type", "response"}},
             {{"seq", 1}, {"command", "debugInfo"}, {"arguments", "text"}},
             {{"seq", 1}, {"command", "launch"}},
             {{"seq", 1}, {"command", "terminate"}},
             {{"seq", 1}, {"command", "nothing like this"}},
             {{"seq", 1}, {"command", "setBreakpoints"}},
             {{"seq", 1}, {"command", "attach"}, {"arguments", json::object()}},
             {{"seq", 1}, {"command", "continue"}, {"arguments", {{"threadId", 1}}}},
             {{"seq", 1}, {"command", "disconnect"}}}) {
        refuse(request);
    }
    for (const auto& [command, arguments] : std::vector<std::pair<std::string, json>>{
             {"dumpCell", json::object()},
             {"dumpCell", {{"code", 3}}},
             {"source", {{"source", {{"path", "/nowhere/x.py"}}}}},
             {"source", {{"source", "text"}}},
             {"variables", json::object()},
             {"variables", {{"variablesReference", 99}}},
             {"variables", {{"variablesReference", "1"}}},
             {"inspectVariables", "text"},
             {"richInspectVariables", {{"variableName", "no_such"}}},
             {"richInspectVariables", {{"variableName", "__import__('os')._exit(3)"}}},
             {"copyToGlobals",
              {{"srcVariableName", "a b"}, {"dstVariableName", "c"}, {"srcFrameId", 1}}},
             {"setBreakpoints", {{"source", {{"path", 1}}}, {"breakpoints", json::array()}}},
             {"setBreakpoints",
              {{"source", {{"path", "x"}}}, {"breakpoints", {{{"line", "1"}}}}}}}) {
        refuse({{"seq", 1}, {"command", command}, {"arguments", arguments}});
    }
    debugger.start();
    refuse({{"seq", 1}, {"command", "stackTrace"}, {"arguments", {{"threadId", "x"}}}});
    refuse({{"seq", 1}, {"command", "nothing like this"}});
    refuse({{"seq", 1}, {"command", "scopes"}, {"arguments", json::object()}});
    CHECK(only(debugger.until_idle(kernel.start("1")), "execute_reply")["status"] == "ok");
}
