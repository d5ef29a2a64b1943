// SPDX-License-Identifier: Apache-2.0
//
// What a driver says, as clients read it.
#include "tests/integration/kernel/driver_folder.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <vector>

using cellkeep::protocol::Channel;
using cellkeep::test::count;
using cellkeep::test::DriverFolder;
using cellkeep::test::first;
using cellkeep::test::KernelClient;
using cellkeep::test::Messages;
using cellkeep::test::metadata;
using cellkeep::test::only;
using cellkeep::test::text_of;
using nlohmann::json;

namespace {

/// Runs the code as Python, which may use `self`.
constexpr const char* kPlain = R"(
    def execute(self, code):
        scope = {"self": self, "CodeError": cellkeep_driver.CodeError}
        exec(code, scope)
        return scope.get("value")
    def complete(self, code, cursor):
        return ["spam", "späm"], 1, cursor, [{"text": "spam", "type": "function"}]
    def inspect(self, code, cursor, detail):
        return f"{code}@{cursor}/{detail}" if code else None
    def is_complete(self, code):
        return ("incomplete", "    ") if code.endswith(":") else code
    def end(self):
        open("ended", "w").close())";

json reply_of(KernelClient& kernel, const std::string& code, const json& changes = {}) {
    return only(kernel.execute(code, changes), "execute_reply");
}

}  // namespace

TEST_CASE("a driver's output reaches clients in order and with its type", "[kernel][driver]") {
    const DriverFolder folder = DriverFolder::with_class(kPlain);
    KernelClient kernel(folder.start());
    const Messages answer = kernel.execute(
        "self.stdout('a\\n'); self.stderr('b\\n'); self.display({'text/html': '<b>'}, {'m': 1}, "
        "'d1')\n"
        "self.display('new', display_id='d1', update=True); self.clear(True); value = 'v'");
    CHECK(text_of(answer, "stdout") == "a\n");
    CHECK(text_of(answer, "stderr") == "b\n");
    CHECK(
        only(answer, "display_data") ==
        json::parse(R"({"data":{"text/html":"<b>"},"metadata":{"m":1},
                        "transient":{"display_id":"d1"}})"));
    CHECK(only(answer, "update_display_data")["data"]["text/plain"] == "new");
    CHECK(only(answer, "clear_output")["wait"] == true);
    CHECK(only(answer, "execute_result")["data"]["text/plain"] == "v");
    CHECK(only(answer, "execute_result")["execution_count"] == 1);
    CHECK(only(answer, "execute_reply")["status"] == "ok");
    std::vector<std::string> order;
    for (const auto& message : answer) {
        if (message.parent().msg_id.empty()) {
            continue;  // "starting"
        }
        order.push_back(message.header().msg_type);
    }
    CHECK(
        order == std::vector<std::string>{
                     "status",
                     "execute_input",
                     "stream",
                     "stream",
                     "display_data",
                     "update_display_data",
                     "clear_output",
                     "execute_result",
                     "execute_reply",
                     "status"});
}

TEST_CASE("an error says where it is, and the exit code arrives", "[kernel][driver]") {
    const DriverFolder folder = DriverFolder::with_class(kPlain);
    KernelClient kernel(folder.start());
    const Messages answer = kernel.execute(
        "self.answer['exit_code'] = 3\n"
        "raise CodeError('Bad', 'no good', line=2, column=7, kind='syntax', traceback=['t1', "
        "'t2'])");
    CHECK(only(answer, "error") == json::parse(R"({"ename":"Bad","evalue":"no good",
                                                   "traceback":["t1","t2"]})"));
    const json reply = only(answer, "execute_reply");
    CHECK(reply["status"] == "error");
    CHECK(reply["ename"] == "Bad");
    CHECK(
        metadata(first(answer, "execute_reply"))["cellkeep"] ==
        json::parse(R"({"exit_code":3,"error":{"kind":"syntax","line":2,"column":7}})"));

    const Messages fine =
        kernel.execute("self.answer.update(exit_code=0, payload=[{'source': 'x'}])");
    CHECK(metadata(first(fine, "execute_reply"))["cellkeep"] == json::parse(R"({"exit_code":0})"));
    CHECK(only(fine, "execute_reply")["payload"].size() == 1);
    // A value that is no exit code is left out.
    CHECK(
        metadata(first(kernel.execute("self.answer['exit_code'] = 256"), "execute_reply")) ==
        json::object());
    // Errors in the driver's own code are errors of the cell.
    CHECK(reply_of(kernel, "1 / 0")["ename"] == "ZeroDivisionError");
}

TEST_CASE(
    "a silent execution publishes no result and no error, and does not count", "[kernel][driver]") {
    const DriverFolder folder = DriverFolder::with_class(kPlain);
    KernelClient kernel(folder.start());
    const Messages answer = kernel.execute("self.stdout('x'); value = 'v'", {{"silent", true}});
    CHECK(count(answer, "execute_result") == 0);
    CHECK(text_of(answer, "stdout") == "x");
    CHECK(count(kernel.execute("1 / 0", {{"silent", true}}), "error") == 0);
    CHECK(reply_of(kernel, "pass")["execution_count"] == 1);
}

TEST_CASE("introspection requests are passed on, with cursors in code points", "[kernel][driver]") {
    const DriverFolder folder = DriverFolder::with_class(kPlain);
    KernelClient kernel(folder.start());
    json reply = only(
        kernel.request("complete_request", {{"code", "äö€"}, {"cursor_pos", 2}}), "complete_reply");
    CHECK(reply["matches"] == json::parse(R"(["spam","späm"])"));
    CHECK(reply["cursor_start"] == 1);
    CHECK(reply["cursor_end"] == 2);
    CHECK(
        reply["metadata"]["_jupyter_types_experimental"] ==
        json::parse(R"([{"text":"spam","type":"function","start":1,"end":2}])"));
    reply = only(kernel.request("complete_request", {{"code", "äö€"}}), "complete_reply");
    CHECK(reply["cursor_end"] == 3);
    reply = only(
        kernel.request(
            "inspect_request", {{"code", "ab"}, {"cursor_pos", 99}, {"detail_level", 1}}),
        "inspect_reply");
    CHECK(reply["found"] == true);
    CHECK(reply["data"]["text/plain"] == "ab@2/1");
    reply = only(kernel.request("inspect_request", {{"code", ""}}), "inspect_reply");
    CHECK(reply["found"] == false);
    const auto is_complete = [&](const char* code) {
        return only(kernel.request("is_complete_request", {{"code", code}}), "is_complete_reply");
    };
    CHECK(is_complete("if:") == json::parse(R"({"status":"incomplete","indent":"    "})"));
    CHECK(is_complete("invalid") == json::parse(R"({"status":"invalid"})"));
    CHECK(is_complete("nonsense") == json::parse(R"({"status":"unknown"})"));
}

TEST_CASE(
    "a request that a driver does not support gets the specification's empty answer",
    "[kernel][driver]") {
    const DriverFolder folder = DriverFolder::with_class("    pass");
    KernelClient kernel(folder.start());
    const json matches =
        only(kernel.request("complete_request", {{"code", "ab"}}), "complete_reply");
    CHECK(matches["status"] == "ok");
    CHECK(matches["matches"].empty());
    CHECK(matches["cursor_end"] == 2);
    CHECK(
        only(kernel.request("inspect_request", {{"code", "a"}}), "inspect_reply")["found"] ==
        false);
    CHECK(
        only(
            kernel.request("is_complete_request", {{"code", "a"}}),
            "is_complete_reply")["status"] == "unknown");
    CHECK(reply_of(kernel, "a")["ename"] == "NotImplementedError");
    CHECK(
        only(kernel.request("comm_info_request", json::object()), "comm_info_reply")["comms"] ==
        json::object());
}

TEST_CASE("a question reaches the client if it may be asked", "[kernel][driver]") {
    const DriverFolder folder = DriverFolder::with_class(kPlain);
    KernelClient kernel(folder.start());
    const std::string id = kernel.start(
        "self.stdout('before'); value = self.input('name? ', True)", {{"allow_stdin", true}});
    const Messages asked = kernel.receive_until("input_request");
    CHECK(text_of(asked, "stdout") == "before");
    CHECK(only(asked, "input_request") == json::parse(R"({"prompt":"name? ","password":true})"));
    kernel.send(Channel::kStdin, "input_reply", {{"value", "späm"}});
    CHECK(only(kernel.receive_until_idle(id), "execute_result")["data"]["text/plain"] == "späm");
    CHECK(reply_of(kernel, "self.input()")["ename"] == "EOFError");
    const std::string again = kernel.start("self.input()", {{"allow_stdin", true}});
    (void)kernel.receive_until("input_request");
    kernel.send(Channel::kStdin, "input_reply", {{"value", ""}, {"eof", true}});
    CHECK(only(kernel.receive_until_idle(again), "execute_reply")["ename"] == "EOFError");
}

TEST_CASE("kernel_info is kernel.json's, with what the driver adds", "[kernel][driver]") {
    const DriverFolder folder = DriverFolder::with_class(
        "    language_info = {'mimetype': 'text/x-toy'}",
        {{"language_info", {{"mimetype", "text/plain"}, {"file_extension", ".toy"}}},
         {"help_links", {{{"text", "Help"}, {"url", "https://example.org/"}}}}});
    KernelClient kernel(folder.start());
    const json info =
        only(kernel.request("kernel_info_request", json::object()), "kernel_info_reply");
    CHECK(
        info["language_info"] ==
        json::parse(
            R"({"name":"toy","version":"1.5","mimetype":"text/x-toy","file_extension":".toy"})"));
    CHECK(info["implementation"] == "cellkeep-toy");
    CHECK(info["help_links"].size() == 1);
    CHECK(info["status"] == "ok");
}

TEST_CASE("the kernel keeps a history for languages that keep none", "[kernel][driver]") {
    const DriverFolder folder = DriverFolder::with_class(kPlain);
    KernelClient kernel(folder.start());
    (void)kernel.execute("value = 'one'");
    (void)kernel.execute("pass");
    (void)kernel.execute("hidden = 1", {{"store_history", false}});
    const auto history = [&](const json& request) {
        return only(kernel.request("history_request", request), "history_reply")["history"];
    };
    CHECK(
        history({{"hist_access_type", "tail"}, {"n", 5}, {"output", true}}) ==
        json::parse(R"([[1,1,["value = 'one'","one"]],[1,2,["pass",null]]])"));
    CHECK(
        history({{"hist_access_type", "range"}, {"session", 0}, {"start", 2}}) ==
        json::parse(R"([[1,2,"pass"]])"));
    CHECK(
        history({{"hist_access_type", "search"}, {"pattern", "*one*"}}) ==
        json::parse(R"([[1,1,"value = 'one'"]])"));
    CHECK(history({{"hist_access_type", "range"}, {"session", 7}}).empty());
}

TEST_CASE("output between cells belongs to the cell that began it", "[kernel][driver]") {
    const DriverFolder folder = DriverFolder::with_class(kPlain);
    KernelClient kernel(folder.start());
    const std::string id = kernel.start(
        "import threading, time\n"
        "threading.Thread(target=lambda: (time.sleep(0.05), self.stdout('later'))).start()");
    (void)kernel.receive_until_idle(id);
    const Messages later = kernel.receive_until("stream");
    CHECK(later.back().parent().msg_id == id);
}

TEST_CASE("characters that are not valid text are replaced, not lost", "[kernel][driver]") {
    const DriverFolder folder = DriverFolder::with_class(kPlain);
    KernelClient kernel(folder.start());
    CHECK(text_of(kernel.execute("self.stdout('a\\udc80b')"), "stdout") == "a?b");
    CHECK(
        text_of(kernel.execute("self.stdout('\\U0001f600' * 300000)"), "stdout").size() ==
        1'200'000);
    CHECK(
        reply_of(kernel, "self.display({'application/json': float('nan')})")["ename"] ==
        "ValueError");
    CHECK(reply_of(kernel, "pass")["status"] == "ok");
}

TEST_CASE(
    "comm messages pass to a driver that wants them, with their buffers", "[kernel][driver]") {
    const DriverFolder folder = DriverFolder::with_class(
        R"(
    def message(self, request):
        if request["type"] == "comm_info_request":
            return {"content": {"comms": {"c1": {"target_name": request["content"]["target_name"]}}}}
        if request["type"] == "history_request":
            return {"content": {"history": [[9, 9, "own"]]}}
        self.emit({"event": "message", "type": "comm_msg", "content": {"comm_id": "c1", "data": {
            "type": request["type"], "header": request["header"]["msg_type"]}},
            "buffers": request["buffers"]}))",
        {{"messages", {"comm_open", "comm_info_request", "history_request"}}});
    KernelClient kernel(folder.start());
    const std::string id = kernel.send(
        Channel::kShell,
        "comm_open",
        {{"comm_id", "c1"}, {"target_name", "t"}},
        json::object(),
        {"\x01\xff", ""});
    const Messages opened = kernel.receive_until_idle(id);
    CHECK(only(opened, "comm_msg")["data"]["type"] == "comm_open");
    CHECK(only(opened, "comm_msg")["data"]["header"] == "comm_open");
    CHECK(first(opened, "comm_msg").buffer_count() == 2);
    CHECK(first(opened, "comm_msg").buffer(0) == "\x01\xff");
    CHECK(
        only(
            kernel.request("comm_info_request", {{"target_name", "t"}}),
            "comm_info_reply")["comms"]["c1"]["target_name"] == "t");
    CHECK(
        only(
            kernel.request("history_request", {{"hist_access_type", "tail"}}),
            "history_reply")["history"][0][2] == "own");
    // The kernel itself handles a message type that kernel.json does not name.
    const std::string other =
        kernel.send(Channel::kShell, "comm_msg", {{"comm_id", "c1"}, {"data", {}}});
    CHECK(count(kernel.receive_until_idle(other), "comm_msg") == 0);
}

TEST_CASE("a spare takes on a name, variables and a directory", "[kernel][driver]") {
    const DriverFolder folder = DriverFolder::with_class(kPlain);
    KernelClient kernel(folder.start());
    const auto adopt = [&](const json& content) {
        kernel.send(Channel::kControl, "cellkeep_adopt_request", content);
        return only(kernel.receive_until("cellkeep_adopt_reply"), "cellkeep_adopt_reply");
    };
    CHECK(adopt({{"env", {{"WHO", "me"}}}, {"working_directory", "/usr"}})["status"] == "ok");
    CHECK(
        only(
            kernel.execute("import os; value = os.environ['WHO'] + os.getcwd()"),
            "execute_result")["data"]["text/plain"] == "me/usr");
    const json refused = adopt({{"env", json::object()}, {"working_directory", "/no/such"}});
    CHECK(refused["status"] == "error");
    CHECK(refused["ename"] == "FileNotFoundError");
}

TEST_CASE("the end of the link ends the driver, which may clean up", "[kernel][driver]") {
    const DriverFolder folder = DriverFolder::with_class(kPlain);
    KernelClient kernel(folder.start());
    (void)kernel.execute("pass");
    kernel.close_link();
    CHECK(kernel.wait_for_end() == 0);
    CHECK(std::ifstream(kernel.directory() + "/ended").good());
}
