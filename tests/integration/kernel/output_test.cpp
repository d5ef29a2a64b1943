// SPDX-License-Identifier: Apache-2.0
#include "tests/support/kernel_client.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <fstream>
#include <sstream>
#include <string_view>

using cellkeep::test::content;
using cellkeep::test::count;
using cellkeep::test::first;
using cellkeep::test::KernelClient;
using cellkeep::test::Messages;
using cellkeep::test::only;
using cellkeep::test::text_of;
using nlohmann::json;

TEST_CASE("a hundred thousand lines arrive complete and in few messages", "[kernel][output]") {
    KernelClient kernel;
    const Messages answer = kernel.execute("for i in range(100_000):\n    print(i)");
    std::string expected;
    for (int index = 0; index < 100'000; ++index) {
        expected += std::to_string(index) + "\n";
    }
    CHECK(text_of(answer, "stdout") == expected);
    CHECK(count(answer, "stream") < 1000);
}

TEST_CASE("stdout and stderr keep the order of the writes", "[kernel][output]") {
    KernelClient kernel;
    std::string order;
    for (const auto& message :
         kernel.execute("import sys\nfor i in range(20):\n"
                        "    print(i, end=' ', file=sys.stderr if i % 2 else sys.stdout)")) {
        if (message.header().msg_type == "stream") {
            order += content(message)["text"].get<std::string>();
        }
    }
    CHECK(order == "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 ");
}

TEST_CASE("a displayed value is sent before any code that may take time", "[kernel][output]") {
    // A result that ends its cell goes out with the reply. After each of these the user's code goes
    // on: it waits until the test opens the fifo, which happens only after the result has arrived.
    KernelClient kernel;
    (void)kernel.execute("import os, sys\nos.mkfifo('gate')\ndef wait(*_): open('gate').close()");
    struct Case {
        const char* before;
        const char* code;
        json changes;
    };
    const auto [before, code, changes] = GENERATE(
        Case{"pass", "sys.displayhook(5); wait()", {}},
        Case{"pass", "[sys.displayhook(5), wait()]", {}},
        Case{"pass", "sys.displayhook(5); 6; wait(); 7", {}},
        Case{"pass", "5", {{"user_expressions", {{"w", "wait()"}}}}},
        Case{"get_ipython().events.register('post_run_cell', wait)", "5", {}},
        Case{"get_ipython().events.register('post_execute', wait)", "5", {}});
    CAPTURE(before, code);
    // The callback runs after the cell that registers it, too.
    const std::string registered = kernel.start(before);
    if (std::string_view(before) != "pass") {
        (void)kernel.receive_until("execute_input");
        std::ofstream(kernel.directory() + "/gate").close();
    }
    (void)kernel.receive_until_idle(registered);
    const std::string id = kernel.start(code, changes);
    CHECK(content(kernel.receive_until("execute_result").back())["data"]["text/plain"] == "5");
    std::ofstream(kernel.directory() + "/gate").close();
    (void)kernel.receive_until_idle(id);
}

TEST_CASE("threads that print at once lose and mix up no line", "[kernel][output]") {
    KernelClient kernel;
    const Messages answer = kernel.execute(
        "import threading\ndef work(name):\n    for i in range(5000): print(f'{name} {i}\\n', "
        "end='')\n"
        "threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]\n"
        "for t in threads: t.start()\nfor t in threads: t.join()");
    std::istringstream lines(text_of(answer, "stdout"));
    std::array<int, 4> next{};
    int name = 0;
    int number = 0;
    while (lines >> name >> number) {
        REQUIRE(number == next.at(static_cast<std::size_t>(name))++);
    }
    CHECK(next == std::array<int, 4>{5000, 5000, 5000, 5000});
}

TEST_CASE("a stream that the user closes refuses writes, and only it", "[kernel][output]") {
    KernelClient kernel;
    const Messages closed =
        kernel.execute("import io, sys\nio.IOBase.close(sys.stdout)\nprint('never')");
    CHECK(only(closed, "error")["ename"] == "ValueError");
    CHECK(text_of(kernel.execute("print('here', file=sys.stderr)"), "stderr") == "here\n");
}

TEST_CASE("a line is sent while the cell still runs", "[kernel][output]") {
    KernelClient kernel;
    const std::string id = kernel.start("print('here')\nwhile True: pass");
    CHECK(text_of(kernel.receive_until("stream"), "stdout") == "here\n");
    kernel.interrupt();
    (void)kernel.receive_until_idle(id);
}

TEST_CASE("text without a line's end is sent soon, while the cell still runs", "[kernel][output]") {
    KernelClient kernel;
    const std::string id = kernel.start("print('50 %', end='')\nwhile True: pass");
    CHECK(text_of(kernel.receive_until("stream"), "stdout") == "50 %");
    kernel.interrupt();
    (void)kernel.receive_until_idle(id);
}

TEST_CASE(
    "output of C code and of subprocesses is on descriptor 1 before idle", "[kernel][output]") {
    KernelClient kernel;
    (void)kernel.execute("import ctypes, os, subprocess");
    (void)kernel.execute("ctypes.CDLL(None).printf(b'from C\\n');");
    CHECK(kernel.read_stdout() == "from C\n");
    (void)kernel.execute("os.system('echo from a shell; echo error >&2');");
    CHECK(kernel.read_stdout() == "from a shell\n");
    CHECK(kernel.read_stderr() == "error\n");
    (void)kernel.execute("import sys\nsys.__stdout__.write('the original\\n');");
    CHECK(kernel.read_stdout() == "the original\n");
}

TEST_CASE("a forked child writes to the descriptors and never serves", "[kernel][output]") {
    KernelClient kernel;
    const Messages answer = kernel.execute(
        "import os\npid = os.fork()\nif pid == 0:\n    print('child')\n"
        "else:\n    print('parent', os.waitpid(pid, 0)[1])");
    CHECK(text_of(answer, "stdout") == "parent 0\n");
    CHECK(kernel.read_stdout() == "child\n");
    CHECK(count(answer, "execute_reply") == 1);
    CHECK(only(kernel.execute("1"), "execute_reply")["status"] == "ok");
}

TEST_CASE("a child forked while stdout is redirected keeps its output", "[kernel][output]") {
    KernelClient kernel;
    const Messages answer = kernel.execute(
        "import contextlib, io, os\nwith contextlib.redirect_stdout(io.StringIO()):\n"
        "    pid = os.fork()\nif pid == 0:\n    print('child')\n"
        "else:\n    print('parent', os.waitpid(pid, 0)[1])");
    CHECK(text_of(answer, "stdout") == "parent 0\n");
    CHECK(kernel.read_stdout() == "child\n");
}

TEST_CASE("a child forked between cells does not end the kernel's way", "[kernel][output]") {
    KernelClient kernel;
    const std::string end = GENERATE(as<std::string>(), "pass", "raise SystemExit(3)");
    const std::string code = end == "pass" ? "0" : "3";
    // The kernel waits for a request when the task forks; the user's atexit function is not to run.
    (void)kernel.execute(
        "import asyncio, atexit, os\natexit.register(lambda: open('ended', 'w').close())\n"
        "async def work():\n"
        "    while not get_ipython().kernel.runner._waiting: await asyncio.sleep(0.001)\n"
        "    pid = os.fork()\n    if pid == 0:\n        " +
        end +
        "\n    else:\n        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])\n"
        "        print('child', code, os.path.exists('ended'))\n"
        "task = asyncio.create_task(work())");
    CHECK(text_of(kernel.receive_until("stream"), "stdout") == "child " + code + " False\n");
    CHECK(only(kernel.execute("1"), "execute_reply")["status"] == "ok");
}

TEST_CASE("threads write into the running cell", "[kernel][output]") {
    KernelClient kernel;
    const Messages answer = kernel.execute(
        "import threading\n"
        "ts = [threading.Thread(target=lambda: [print('t') for _ in range(500)]) for _ in "
        "range(4)]\n"
        "[t.start() for t in ts]; [t.join() for t in ts];");
    std::string text = text_of(answer, "stdout");
    CHECK(text.size() == 4000);
    CHECK(std::count(text.begin(), text.end(), 't') == 2000);
}

TEST_CASE("a thread's output after its cell arrives with the cell as parent", "[kernel][output]") {
    KernelClient kernel;
    const std::string id = kernel.start(
        "import os, threading\nos.mkfifo('gate')\n"
        // One write: what comes between two may be sent apart.
        "threading.Thread(target=lambda: (open('gate').close(), print('late\\n', "
        "end=''))).start()");
    (void)kernel.receive_until_idle(id);
    std::ofstream(kernel.directory() + "/gate").close();  // Once the thread reads.
    const Messages late = kernel.receive_until("stream");
    CHECK(text_of(late, "stdout") == "late\n");
    CHECK(late.back().parent().msg_id == id);
}

TEST_CASE("the streams look like Python's", "[kernel][output]") {
    KernelClient kernel;
    const Messages answer = kernel.execute(
        "import io, sys\n"
        "print(sys.stdout.encoding, sys.stdout.isatty(), sys.stdout.fileno(), sys.stderr.fileno(),"
        " sys.stdout.writable(), isinstance(sys.stdout, io.TextIOBase))\n"
        "sys.stdout.buffer.write('é'.encode())\nsys.stdout.flush()\n"
        "print(chr(0xd800), file=sys.stderr)");
    CHECK(text_of(answer, "stdout") == "utf-8 False 1 2 True True\né");
    CHECK(text_of(answer, "stderr") == "\\ud800\n");
    CHECK(
        only(kernel.execute("print(chr(0xd800))"), "execute_reply")["ename"] ==
        "UnicodeEncodeError");
    CHECK(only(kernel.execute("sys.stdout.write(5)"), "execute_reply")["ename"] == "TypeError");
}

TEST_CASE("one long text becomes several messages", "[kernel][output]") {
    KernelClient kernel;
    const Messages answer = kernel.execute("print('é' * 1_600_000, end='')");
    CHECK(text_of(answer, "stdout").size() == 3'200'000);
    CHECK(count(answer, "stream") == 4);
}

TEST_CASE("after a cell the kernel has one thread and no epoll descriptor", "[kernel][output]") {
    KernelClient kernel;
    (void)kernel.execute("print('a', end='')");
    const Messages answer = kernel.execute(
        "import glob, os\n"
        "([f for f in glob.glob('/proc/self/fd/*') if 'epoll' in os.path.realpath(f)],"
        " len(os.listdir('/proc/self/task')))");
    CHECK(only(answer, "execute_result")["data"]["text/plain"] == "([], 1)");
}
