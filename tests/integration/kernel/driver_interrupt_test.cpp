// SPDX-License-Identifier: Apache-2.0
//
// Interrupts of cells in drivers: none is lost, none hits another cell.
#include "tests/integration/kernel/driver_folder.hpp"

#include <catch2/catch.hpp>

#include <string>

using cellkeep::protocol::Channel;
using cellkeep::protocol::Message;
using cellkeep::test::content;
using cellkeep::test::DriverFolder;
using cellkeep::test::error_place;
using cellkeep::test::KernelClient;
using cellkeep::test::Messages;
using cellkeep::test::only;
using nlohmann::json;

namespace {

constexpr const char* kInterruptible = R"(
    def execute(self, code):
        exec(code, {"self": self})
    def is_complete(self, code):
        return "complete")";

}  // namespace

TEST_CASE("an interrupt ends the cell of a driver, not the driver", "[kernel][driver]") {
    const DriverFolder folder = DriverFolder::with_class(kInterruptible);
    KernelClient kernel(folder.start());
    const std::string code = GENERATE(
        as<std::string>(),
        "self.stdout('go')\nwhile True: pass",
        "self.stdout('go')\nwhile True: self.stdout('x' * 100000)",
        "import time\nself.stdout('go')\nwhile True: time.sleep(0.01)",
        "self.stdout('go')\nself.input()");
    CAPTURE(code);
    const std::string id = kernel.start(code, {{"allow_stdin", true}});
    (void)kernel.receive_until("stream");
    kernel.interrupt();
    const Messages answer = kernel.receive_until_idle(id);
    CHECK(only(answer, "execute_reply")["ename"] == "KeyboardInterrupt");
    CHECK(error_place(answer)["kind"] == "interrupt");
    CHECK(only(kernel.execute("pass"), "execute_reply")["status"] == "ok");
}

TEST_CASE("an interrupt that comes before the cell has begun is not lost", "[kernel][driver]") {
    const DriverFolder folder = DriverFolder::with_class(kInterruptible);
    KernelClient kernel(folder.start());
    // Skips the status "starting": an interrupt is for the cell only from "busy" on.
    REQUIRE(only(kernel.execute("pass"), "execute_reply")["status"] == "ok");
    for (int index = 0; index < 100; ++index) {
        // Not one long sleep: CPython itself loses what comes between its last look for signals
        // and clock_nanosleep(2).
        const std::string id = kernel.start("import time\nwhile True: time.sleep(0.01)");
        (void)kernel.receive_until("status");  // busy: from here on an interrupt is the cell's
        kernel.interrupt();
        REQUIRE(
            only(kernel.receive_until_idle(id), "execute_reply")["ename"] == "KeyboardInterrupt");
    }
}

TEST_CASE("an interrupt that comes after its cell hits nothing", "[kernel][driver]") {
    const DriverFolder folder = DriverFolder::with_class(kInterruptible);
    KernelClient kernel(folder.start());
    for (int index = 0; index < 50; ++index) {
        const std::string id = kernel.start("self.stdout('x')");
        (void)kernel.receive_until("status");
        kernel.interrupt();  // before, in or after the cell
        (void)kernel.receive_until_idle(id);
        // The next cell is not interrupted, with any end of the first.
        REQUIRE(only(kernel.execute("pass"), "execute_reply")["status"] == "ok");
    }
    for (int index = 0; index < 50; ++index) {
        kernel.interrupt();
    }
    (void)kernel.request("kernel_info_request", json::object());
    CHECK(only(kernel.execute("pass"), "execute_reply")["status"] == "ok");
}

TEST_CASE("a driver may want interrupts as messages", "[kernel][driver]") {
    const DriverFolder folder = DriverFolder::with_class(
        R"(
    def execute(self, code):
        self.stdout("go")
        line = self._loop.next_request()
        return line["request"])",
        {{"interrupt", "message"}});
    KernelClient kernel(folder.start());
    const std::string id = kernel.start("x");
    (void)kernel.receive_until("stream");
    kernel.interrupt();
    CHECK(
        only(kernel.receive_until_idle(id), "execute_result")["data"]["text/plain"] == "interrupt");
}

TEST_CASE("a question behind an interrupt replaces the one before it", "[kernel][driver]") {
    // As in a language whose code may catch its interrupt and ask again.
    const DriverFolder folder = DriverFolder::with_class(
        R"(
    def execute(self, code):
        self.emit({"event": "input", "prompt": "first", "password": False})
        assert self._loop.next_request()["request"] == "interrupt"
        self.emit({"event": "input", "prompt": "second", "password": False})
        return self._loop.next_request()["value"])",
        {{"interrupt", "message"}});
    KernelClient kernel(folder.start());
    const std::string id = kernel.start("x", {{"allow_stdin", true}});
    const auto ask = [&] { return kernel.receive_until("input_request").back(); };
    const auto answer = [&](const Message& question, const char* value) {
        kernel.send(
            Channel::kStdin,
            "input_reply",
            {{"value", value}},
            json::parse(question.header_json()));
    };
    const Message question = ask();
    kernel.interrupt();
    const Message again = ask();
    CHECK(content(again)["prompt"] == "second");
    answer(question, "late");
    answer(again, "right");
    CHECK(only(kernel.receive_until_idle(id), "execute_result")["data"]["text/plain"] == "right");
}
