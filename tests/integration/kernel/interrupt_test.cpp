// SPDX-License-Identifier: Apache-2.0
#include "tests/support/kernel_client.hpp"

#include <catch2/catch.hpp>

using cellkeep::protocol::Channel;
using cellkeep::test::error_place;
using cellkeep::test::KernelClient;
using cellkeep::test::Messages;
using cellkeep::test::only;
using nlohmann::json;

TEST_CASE("an interrupt ends a cell in any kind of work", "[kernel][interrupt]") {
    KernelClient kernel;
    const std::string code = GENERATE(
        as<std::string>(),
        "print('go')\nwhile True: pass",
        "import time\nprint('go')\ntime.sleep(1000)",
        "import asyncio\nprint('go')\nawait asyncio.sleep(1000)",
        "import asyncio\nprint('go')\nwhile True: await asyncio.sleep(0)",
        "import subprocess\nprint('go')\nsubprocess.run(['sleep', '1000'])",
        "import subprocess\nprint('go')\nsubprocess.run(['sleep', '1000'], capture_output=True)",
        "!echo go; sleep 1000",
        "%%bash\necho go; exec sleep 1000",
        "import _thread\nlock = "
        "_thread.allocate_lock()\nlock.acquire()\nprint('go')\nlock.acquire()",
        "import asyncio, time\nasync def background():\n    print('go')\n    time.sleep(1000)\n"
        "task = asyncio.create_task(background())\nawait asyncio.sleep(1000)");
    CAPTURE(code);
    const std::string id = kernel.start(code);
    (void)kernel.receive_until("stream");
    kernel.interrupt();
    const Messages answer = kernel.receive_until_idle(id);
    CHECK(only(answer, "error")["ename"] == "KeyboardInterrupt");
    CHECK(only(answer, "error")["traceback"].dump().find("_on_interrupt") == std::string::npos);
    CHECK(only(answer, "execute_reply")["ename"] == "KeyboardInterrupt");
    CHECK(error_place(answer)["kind"] == "interrupt");
    CHECK(only(kernel.execute("1 + 1"), "execute_result")["data"]["text/plain"] == "2");
}

TEST_CASE("an idle kernel ignores interrupts", "[kernel][interrupt]") {
    KernelClient kernel;
    (void)kernel.request("kernel_info_request", json::object());
    for (int index = 0; index < 50; ++index) {
        kernel.interrupt();
    }
    // An interrupt of the idle kernel does not fall on the next cell: the reply to this request
    // shows that the signals have been taken.
    (void)kernel.request("kernel_info_request", json::object());
    CHECK(only(kernel.execute("1"), "execute_reply")["status"] == "ok");
}

TEST_CASE("an interrupt at a cell's end does not fall on a held request", "[kernel][interrupt]") {
    KernelClient kernel;
    // The stream is flushed after the cell's code. The second request arrives during the question.
    const std::string first = kernel.start(
        "import os, signal, sys\nrunner = get_ipython().kernel.runner\nclass Strike:\n"
        "    write = sys.stdout.write\n    struck = False\n    def flush(self):\n"
        "        if runner.is_running or self.struck: return\n        self.struck = True\n"
        "        os.kill(os.getpid(), signal.SIGINT)\ninput()\nsys.stdout = Strike()",
        {{"allow_stdin", true}});
    (void)kernel.receive_until("input_request");
    const std::string second = kernel.start("sys.stdout.struck");
    (void)kernel.send(Channel::kStdin, "input_reply", {{"value", ""}});
    (void)kernel.receive_until_idle(first);
    CHECK(
        only(kernel.receive_until_idle(second), "execute_result")["data"]["text/plain"] == "True");
}

TEST_CASE("an interrupt right after busy is not lost", "[kernel][interrupt]") {
    KernelClient kernel;
    (void)kernel.request("kernel_info_request", json::object());
    for (int index = 0; index < 100; ++index) {
        const std::string id = kernel.start("while True: pass");
        (void)kernel.receive_until("status");
        kernel.interrupt();
        CHECK(only(kernel.receive_until_idle(id), "execute_reply")["ename"] == "KeyboardInterrupt");
    }
}

TEST_CASE(
    "an interrupt that falls on the kernel's own work before the cell is not lost",
    "[kernel][interrupt]") {
    KernelClient kernel;
    // IPython catches KeyboardInterrupt in its callbacks, so one raised there would be lost.
    (void)kernel.execute(
        "import os, signal\n"
        "def strike(info): os.kill(os.getpid(), signal.SIGINT)\n"
        "get_ipython().events.register('pre_run_cell', strike)");
    const Messages answer = kernel.execute("while True: pass");
    CHECK(only(answer, "execute_reply")["ename"] == "KeyboardInterrupt");
}

TEST_CASE(
    "an interrupt reaches a cell that is busy inside asyncio's own functions",
    "[kernel][interrupt]") {
    KernelClient kernel;
    const std::string id = kernel.start(
        "import asyncio\nloop = asyncio.get_running_loop()\nprint('go')\n"
        "while True: loop.call_later(1000, print).cancel()");
    (void)kernel.receive_until("stream");
    kernel.interrupt();
    CHECK(only(kernel.receive_until_idle(id), "execute_reply")["ename"] == "KeyboardInterrupt");
}

TEST_CASE("a cell may handle its interrupt", "[kernel][interrupt]") {
    KernelClient kernel;
    const std::string id = kernel.start(
        "try:\n    print('go')\n    while True: pass\nexcept KeyboardInterrupt:\n    result = "
        "'caught'\n"
        "result");
    (void)kernel.receive_until("stream");
    kernel.interrupt();
    CHECK(
        only(kernel.receive_until_idle(id), "execute_result")["data"]["text/plain"] == "'caught'");
}

TEST_CASE("an interrupt does not end background tasks", "[kernel][interrupt][async]") {
    KernelClient kernel;
    (void)kernel.execute(
        "import asyncio\nasync def tick():\n    for n in range(1000000):\n"
        "        await asyncio.sleep(0.001)\ntask = asyncio.create_task(tick())");
    const std::string id = kernel.start("print('go')\nawait asyncio.sleep(1000)");
    (void)kernel.receive_until("stream");
    kernel.interrupt();
    CHECK(only(kernel.receive_until_idle(id), "execute_reply")["ename"] == "KeyboardInterrupt");
    CHECK(only(kernel.execute("task.done()"), "execute_result")["data"]["text/plain"] == "False");
}
