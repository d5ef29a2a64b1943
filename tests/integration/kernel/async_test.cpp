// SPDX-License-Identifier: Apache-2.0
#include "tests/support/kernel_client.hpp"

#include <catch2/catch.hpp>

#include <signal.h>

using cellkeep::test::content;
using cellkeep::test::KernelClient;
using cellkeep::test::Messages;
using cellkeep::test::only;
using cellkeep::test::text_of;
using nlohmann::json;

TEST_CASE("a cell may await at its top level", "[kernel][async]") {
    KernelClient kernel;
    const Messages answer = kernel.execute(
        "import asyncio\nawait asyncio.sleep(0.001)\nasync with asyncio.Lock():\n"
        "    value = 5\nvalue");
    CHECK(only(answer, "execute_result")["data"]["text/plain"] == "5");
}

TEST_CASE("a plain cell runs inside the loop", "[kernel][async]") {
    KernelClient kernel;
    const Messages answer =
        kernel.execute("import asyncio\nloop = asyncio.get_running_loop()\nloop.is_running()");
    CHECK(only(answer, "execute_result")["data"]["text/plain"] == "True");
    CHECK(
        only(
            kernel.execute("asyncio.get_running_loop() is loop"),
            "execute_result")["data"]["text/plain"] == "True");
}

TEST_CASE(
    "a background task goes on between cells and prints into its last cell", "[kernel][async]") {
    KernelClient kernel;
    const std::string id = kernel.start(
        "import asyncio\nasync def work():\n    for n in range(3):\n"
        "        await asyncio.sleep(0.005)\n        print('step', n)\n"
        "task = asyncio.create_task(work())");
    (void)kernel.receive_until_idle(id);
    // No request is sent: the kernel is idle while these arrive.
    std::string text;
    while (text.find("step 2") == std::string::npos) {
        const Messages more = kernel.receive_until("stream");
        CHECK(more.back().parent().msg_id == id);
        text += text_of(more, "stdout");
    }
    CHECK(text == "step 0\nstep 1\nstep 2\n");
    CHECK(only(kernel.execute("task.done()"), "execute_result")["data"]["text/plain"] == "True");
}

TEST_CASE("a failing background task does not end the kernel", "[kernel][async]") {
    KernelClient kernel;
    for (const char* error : {"ValueError", "SystemExit", "KeyboardInterrupt"}) {
        CAPTURE(error);
        (void)kernel.execute(
            std::string(
                "import asyncio\nasync def fail():\n    await asyncio.sleep(0)\n    raise ") +
            error + "()\ntask = asyncio.create_task(fail())");
        CHECK(
            only(kernel.execute("await asyncio.sleep(0.001)\n1"), "execute_reply")["status"] ==
            "ok");
    }
}

TEST_CASE("asyncio's subprocesses and threads work in a cell", "[kernel][async]") {
    KernelClient kernel;
    const Messages answer = kernel.execute(
        "import asyncio\np = await asyncio.create_subprocess_exec('echo', 'hi',"
        " stdout=asyncio.subprocess.PIPE)\n"
        "(await p.communicate())[0], await asyncio.to_thread(lambda: 3)");
    CHECK(only(answer, "execute_result")["data"]["text/plain"] == "(b'hi\\n', 3)");
}

TEST_CASE("an idle kernel hears other threads and signals", "[kernel][async]") {
    KernelClient kernel;
    (void)kernel.execute("1");  // nothing is left to run: the kernel waits for the link alone
    (void)kernel.execute(
        "import asyncio, os, signal, threading\n"
        "loop = asyncio.get_running_loop()\n"
        "go = threading.Event()\n"
        "def call():\n"
        "    go.wait()\n"
        "    loop.call_soon_threadsafe(print, 'from a thread')\n"
        "threading.Thread(target=call).start()\n"
        "signal.signal(signal.SIGUSR1, lambda *_: print('from a handler'))\n"
        "signal.signal(signal.SIGUSR2, lambda *_: go.set())\n"
        "loop.add_signal_handler(signal.SIGHUP, print, 'from the loop')");
    const auto heard = [&](int number) {
        REQUIRE(::kill(kernel.pid(), number) == 0);
        return cellkeep::test::content(kernel.receive_until("stream").back())["text"];
    };
    CHECK(heard(SIGUSR1) == "from a handler\n");
    CHECK(heard(SIGUSR2) == "from a thread\n");
    CHECK(heard(SIGHUP) == "from the loop\n");
    CHECK(heard(SIGUSR1) == "from a handler\n");
    CHECK(only(kernel.execute("2"), "execute_result")["data"]["text/plain"] == "2");
}
