// SPDX-License-Identifier: Apache-2.0
//
// debug_request against the kernel alone: what JupyterLab's debugger does, and what it must not
// break. Through a server: tests/integration/server/test_debugger.py.
#include "tests/integration/kernel/debugger_client.hpp"

#include <catch2/catch.hpp>

#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

using cellkeep::protocol::Channel;
using cellkeep::protocol::Message;
using cellkeep::test::Debugger;
using cellkeep::test::error_place;
using cellkeep::test::first;
using cellkeep::test::KernelClient;
using cellkeep::test::Messages;
using cellkeep::test::only;
using cellkeep::test::text_of;
using nlohmann::json;

namespace {

const std::string kCell =
    "def f(a):\n"
    "    b = a * 2\n"
    "    return b\n"
    "x = f(4)\n"
    "print('x is', x)";

}  // namespace

TEST_CASE("kernel_info offers the debugger", "[kernel][debugger]") {
    KernelClient kernel;
    const json info =
        only(kernel.request("kernel_info_request", json::object()), "kernel_info_reply");
    CHECK(info["debugger"] == true);
    CHECK(info["supported_features"] == json{"debugger"});
}

TEST_CASE(
    "a breakpoint in a cell stops it; variables, steps, the right output", "[kernel][debugger]") {
    KernelClient kernel;
    Debugger debugger(kernel);
    debugger.start();
    const std::string path = debugger.break_at(kCell, {2});
    const std::string id = debugger.run_to_stop(kCell);

    CHECK(debugger.must("debugInfo")["stoppedThreads"] == json{1});
    CHECK(
        debugger.must("threads")["threads"] == json::array({{{"id", 1}, {"name", "MainThread"}}}));
    const json frames = debugger.frames();
    REQUIRE(frames.size() == 2);  // without the kernel's own
    CHECK(frames[0]["name"] == "f");
    CHECK(frames[0]["line"] == 2);
    CHECK(frames[0]["source"]["path"] == path);
    CHECK(frames[1]["line"] == 4);
    const json frame = frames[0]["id"];
    const json scopes = debugger.must("scopes", {{"frameId", frame}})["scopes"];
    const json locals = debugger.must(
        "variables", {{"variablesReference", scopes[0]["variablesReference"]}})["variables"];
    REQUIRE(locals.size() == 1);
    CHECK(locals[0]["name"] == "a");
    CHECK(locals[0]["value"] == "4");
    CHECK(
        debugger.must("evaluate", {{"expression", "a + 1"}, {"frameId", frame}})["result"] == "5");
    CHECK(
        debugger.must("richInspectVariables", {{"variableName", "a"}, {"frameId", frame}}) ==
        json{{"data", {{"text/plain", "4"}}}, {"metadata", json::object()}});
    (void)debugger.must(
        "copyToGlobals",
        {{"srcVariableName", "a"}, {"dstVariableName", "copied"}, {"srcFrameId", frame}});
    CHECK(debugger.must("source", {{"source", {{"path", path}}}})["content"] == kCell);

    debugger.step("next");
    CHECK(debugger.line() == 3);
    debugger.step("stepOut");
    CHECK(debugger.line() == 4);
    debugger.step("next");
    CHECK(debugger.line() == 5);
    debugger.go_on();
    const Messages answer = debugger.until_idle(id);
    CHECK(text_of(answer, "stdout") == "x is 8\n");
    CHECK(only(answer, "execute_reply")["status"] == "ok");
    CHECK(debugger.must("debugInfo")["stoppedThreads"] == json::array());
    CHECK(
        only(debugger.until_idle(kernel.start("copied")), "execute_result")["data"]["text/plain"] ==
        "4");
}

TEST_CASE(
    "stepping into a function and past a cell's end shows no kernel code", "[kernel][debugger]") {
    KernelClient kernel;
    Debugger debugger(kernel);
    debugger.start();
    (void)debugger.break_at(kCell, {4});
    const std::string id = debugger.run_to_stop(kCell);
    debugger.step("stepIn");
    CHECK(debugger.frames()[0]["name"] == "f");
    debugger.step("stepOut");
    debugger.step("next");
    CHECK(debugger.line() == 5);
    (void)debugger.send("next", {{"threadId", 1}});
    CHECK(text_of(debugger.until_idle(id), "stdout") == "x is 8\n");
}

TEST_CASE("a breakpoint finds a function that was defined before debugging", "[kernel][debugger]") {
    KernelClient kernel;
    Debugger debugger(kernel);
    const std::string definition = "\n\ndef late(n):\n    return n + 1";
    (void)kernel.execute(definition);
    debugger.start();
    (void)debugger.break_at(definition, {4});
    const std::string id = debugger.run_to_stop("late(1)");
    CHECK(debugger.line() == 4);
    debugger.go_on();
    CHECK(only(debugger.until_idle(id), "execute_result")["data"]["text/plain"] == "2");
}

TEST_CASE("errors keep their lines while a debugger is attached", "[kernel][debugger]") {
    KernelClient kernel;
    Debugger debugger(kernel);
    debugger.start();
    (void)debugger.must("configurationDone");
    const Messages answer = debugger.until_idle(kernel.start("\n\nx = 1\nx / 0"));
    CHECK(error_place(answer)["line"] == 4);
    const std::string traceback = only(answer, "error")["traceback"].dump();
    CHECK(traceback.find("In[1]") != std::string::npos);
    CHECK(traceback.find("cellkeep_kernel") == std::string::npos);
    CHECK(traceback.find("debugpy") == std::string::npos);
}

TEST_CASE("an exception breakpoint stops where it is raised", "[kernel][debugger]") {
    KernelClient kernel;
    Debugger debugger(kernel);
    debugger.start();
    (void)debugger.must("setExceptionBreakpoints", {{"filters", {"raised"}}});
    (void)debugger.must("configurationDone");
    const std::string id = debugger.run_to_stop("y = 2\n1 / 0");
    CHECK(debugger.line() == 2);
    CHECK(
        debugger.must("exceptionInfo", {{"threadId", 1}})["exceptionId"].dump().find(
            "ZeroDivisionError") != std::string::npos);
    debugger.go_on();
    CHECK(only(debugger.until_idle(id), "execute_reply")["ename"] == "ZeroDivisionError");
}

TEST_CASE("an interrupt ends a stopped cell, and breakpoints still hold", "[kernel][debugger]") {
    KernelClient kernel;
    Debugger debugger(kernel);
    debugger.start();
    const std::string endless = kCell + "\nwhile True: pass";
    (void)debugger.break_at(endless, {2});
    for (int round = 0; round < 2; ++round) {
        const std::string id = debugger.run_to_stop(endless);
        kernel.interrupt();
        CHECK(only(debugger.until_idle(id), "execute_reply")["ename"] == "KeyboardInterrupt");
    }
}

TEST_CASE(
    "after a disconnect cells run through; a second debugger can come", "[kernel][debugger]") {
    KernelClient kernel;
    Debugger debugger(kernel);
    debugger.start();
    (void)debugger.break_at(kCell, {2});
    const std::string stopped = debugger.run_to_stop(kCell);
    (void)debugger.must("disconnect", {{"restart", false}, {"terminateDebuggee", true}});
    CHECK(text_of(debugger.until_idle(stopped), "stdout") == "x is 8\n");
    CHECK(debugger.must("debugInfo")["isStarted"] == false);
    CHECK(debugger.must("debugInfo")["breakpoints"] == json::array());
    const Messages free = debugger.until_idle(kernel.start(kCell));
    CHECK(text_of(free, "stdout") == "x is 8\n");
    CHECK(text_of(free, "stderr").empty());
    CHECK(
        only(
            debugger.until_idle(kernel.start("import sys; sys.gettrace()  is None")),
            "execute_result")["data"]["text/plain"] == "True");

    debugger.start();
    const std::string path = debugger.break_at(kCell, {5});
    CHECK(
        debugger.must("debugInfo")["breakpoints"] ==
        json::array({{{"source", path}, {"breakpoints", json::array({{{"line", 5}}})}}}));
    const std::string id = debugger.run_to_stop(kCell);
    CHECK(debugger.line() == 5);
    debugger.go_on();
    CHECK(only(debugger.until_idle(id), "execute_reply")["status"] == "ok");
}

TEST_CASE("variables are shown also when nothing is stopped or started", "[kernel][debugger]") {
    KernelClient kernel;
    Debugger debugger(kernel);
    (void)kernel.execute(
        "number = 7\nwords = {'one': 1}\nimport pandas as pd\nframe = pd.DataFrame({'c': [1]})");
    const json all = debugger.must("inspectVariables")["variables"];
    json reference;
    std::vector<std::string> names;
    for (const json& variable : all) {
        names.push_back(variable["name"]);
        if (variable["name"] == "words") {
            reference = variable["variablesReference"];
        }
    }
    CHECK(std::find(names.begin(), names.end(), "number") != names.end());
    CHECK(std::find(names.begin(), names.end(), "In") == names.end());
    CHECK(std::find(names.begin(), names.end(), "get_ipython") == names.end());
    REQUIRE(reference.is_number());
    const json inside =
        debugger.must("variables", {{"variablesReference", reference}})["variables"];
    CHECK(inside.dump().find("one") != std::string::npos);
    const json rich = debugger.must("richInspectVariables", {{"variableName", "frame"}});
    CHECK(rich["data"].contains("text/html"));
    CHECK(
        debugger.must("modules", {{"startModule", 1}, {"moduleCount", 40}})["modules"].size() <=
        40);
}

TEST_CASE("input works while the debugger's thread reads the link", "[kernel][debugger]") {
    KernelClient kernel;
    Debugger debugger(kernel);
    debugger.start();
    (void)debugger.must("configurationDone");
    const std::string id = kernel.start("input('?') * 2", {{"allow_stdin", true}});
    const Message question = first(kernel.receive_until("input_request"), "input_request");
    const std::string later = kernel.start("'later'");
    (void)kernel.send(
        Channel::kStdin,
        "input_reply",
        {{"value", "ab"}},
        cellkeep::protocol::to_json(question.header()));
    CHECK(only(debugger.until_idle(id), "execute_result")["data"]["text/plain"] == "'abab'");
    CHECK(only(debugger.until_idle(later), "execute_reply")["status"] == "ok");
}

TEST_CASE(
    "a forked child of a debugged kernel does not stop at breakpoints", "[kernel][debugger]") {
    KernelClient kernel;
    Debugger debugger(kernel);
    const std::string code =
        "import os\npid = os.fork()\nif pid == 0:\n    "
        "os._exit(5)\nos.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])";
    debugger.start();
    (void)debugger.break_at(code, {4});
    CHECK(
        only(debugger.until_idle(kernel.start(code)), "execute_result")["data"]["text/plain"] ==
        "5");
}

TEST_CASE("a link that closes while a cell is stopped ends the kernel", "[kernel][debugger]") {
    KernelClient kernel;
    Debugger debugger(kernel);
    debugger.start();
    (void)debugger.break_at(kCell, {2});
    (void)debugger.run_to_stop(kCell);
    kernel.close_link();
    const int status = kernel.wait_for_end();
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("cells are named by MurmurHash2 under the announced prefix", "[kernel][debugger]") {
    KernelClient kernel;
    Debugger debugger(kernel);
    const json info = debugger.must("debugInfo");
    CHECK(info["isStarted"] == false);
    CHECK(info["hashMethod"] == "Murmur2");
    CHECK(info["hashSeed"] == 0xC70F6907U);
    const std::string prefix = info["tmpFilePrefix"];
    const std::string suffix = info["tmpFileSuffix"];
    // The values are those of ipykernel's and JupyterLab's implementations.
    for (const auto& [code, hash] : std::vector<std::pair<std::string, std::string>>{
             {"", "3990065800"},
             {"a", "2167009006"},
             {"ab", "2805137849"},
             {"abc", "3350977461"},
             {"abcd", "804720481"},
             {"x = 1\n", "1602534638"},
             {"'é😀'", "3243565403"},
         }) {
        CHECK(debugger.must("dumpCell", {{"code", code}})["sourcePath"] == prefix + hash + suffix);
    }
    (void)kernel.request("shutdown_request", {{"restart", false}}, Channel::kControl);
    (void)kernel.wait_for_end();
    CHECK_FALSE(std::filesystem::exists(prefix));
}
