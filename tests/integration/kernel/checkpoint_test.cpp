// SPDX-License-Identifier: Apache-2.0
//
// The kernel's half of checkpoints (protocol/internal_request.hpp), without a sandbox: the test is
// the server, and the parent of the copies.
#include "protocol/internal_request.hpp"
#include "protocol/support/syscall.hpp"
#include "sandbox/inside/copy/parked_threads.hpp"
#include "sandbox/inside/copy/unshared_descriptors.hpp"
#include "sandbox/shared/sleep_messages.hpp"
#include "tests/integration/kernel/copies.hpp"
#include "tests/support/kernel_client.hpp"

#include <catch2/catch.hpp>

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>

using cellkeep::protocol::Channel;
using cellkeep::protocol::kCheckpointRequest;
using cellkeep::test::ask;
using cellkeep::test::Asked;
using cellkeep::test::Child;
using cellkeep::test::info_of;
using cellkeep::test::KernelClient;
using cellkeep::test::Messages;
using cellkeep::test::only;
using cellkeep::test::text_of;
using cellkeep::test::wake;
using nlohmann::json;

TEST_CASE("a kernel goes back to a copy of itself, as often as wanted", "[kernel][checkpoint]") {
    KernelClient kernel;
    (void)info_of(kernel);
    const Messages before = kernel.execute(
        "import os, random, math\n"
        "open('data', 'w').write('0123456789')\n"
        "file = open('data', 'rb', 0); _ = file.read(3)\n"
        "os.mkdir('inner'); os.chdir('inner'); os.environ['STAGE'] = 'one'\n"
        "numbers = (n for n in range(10)); _ = next(numbers)\n"
        "random.seed(7); value = 'first'");
    CHECK(only(before, "execute_reply")["status"] == "ok");
    const Asked asked = ask(kernel);
    REQUIRE(asked.reply["status"] == "ok");
    CHECK(asked.reply["execution_count"] == 1);
    CHECK(
        asked.reply["lost"] ==
        json{{"threads", 0}, {"children", 0}, {"sockets", 0}, {"shared_mappings", 0}});
    const Child copy(asked.reply["pid"].get<pid_t>());
    // The process that was copied goes on.
    const std::string look =
        "print(value, os.path.basename(os.getcwd()), os.environ['STAGE'], file.read(2).decode(),"
        " next(numbers), random.randrange(10**6), end='')";
    const Messages here = kernel.execute(
        "value = 'second'; os.chdir('/'); os.environ['STAGE'] = 'two'; _ = file.read(1)\n" + look);
    CHECK(only(here, "execute_reply")["execution_count"] == 2);
    CHECK_THAT(text_of(here, "stdout"), Catch::StartsWith("second  two 45 1 "));
    const std::string session = here.front().header().session;
    const pid_t left = kernel.pid();
    std::string first;
    for (std::uint32_t turn = 1; turn <= 2; ++turn) {
        const Child woken(wake(kernel, asked.socket, turn, false));
        CHECK(info_of(kernel)["status"] == "ok");
        const Messages again = kernel.execute(look);
        CHECK(only(again, "execute_reply")["execution_count"] == 2);
        CHECK_THAT(text_of(again, "stdout"), Catch::StartsWith("first inner one 34 1 "));
        // The same random numbers, and a name of its own in every header.
        CHECK((turn == 1 || text_of(again, "stdout") == first));
        first = text_of(again, "stdout");
        CHECK(again.front().header().session != session);
        const Messages own = kernel.execute("print(os.getpid(), os.getppid())");
        CHECK(
            text_of(own, "stdout") ==
            std::to_string(woken.pid()) + " " + std::to_string(::getpid()) + "\n");
        CHECK(woken.pid() != left);
        kernel.close_link();
    }
}

TEST_CASE("random states are made anew if that is asked for", "[kernel][checkpoint]") {
    // NumPy's pool of threads would be lost.
    KernelClient kernel({.variables = {"OPENBLAS_NUM_THREADS=1"}});
    (void)info_of(kernel);
    (void)kernel.execute("import random, numpy; random.seed(7); numpy.random.seed(7)");
    const Asked asked = ask(kernel);
    REQUIRE(asked.reply["status"] == "ok");
    const Child copy(asked.reply["pid"].get<pid_t>());
    const std::string draw = "print(random.random(), numpy.random.random())";
    const std::string kept = text_of(kernel.execute(draw), "stdout");
    {
        const Child same(wake(kernel, asked.socket, 1, false));
        (void)info_of(kernel);
        CHECK(text_of(kernel.execute(draw), "stdout") == kept);
    }
    const Child other(wake(kernel, asked.socket, 2, true));
    (void)info_of(kernel);
    CHECK(text_of(kernel.execute(draw), "stdout") != kept);
}

TEST_CASE("a copy holds no link and no output of the running kernel", "[kernel][checkpoint]") {
    KernelClient kernel;
    (void)info_of(kernel);
    // What user code has made of them, too.
    (void)kernel.execute("import os; saved = os.dup(1); other = os.dup(2)");
    const Asked asked = ask(kernel);
    REQUIRE(asked.reply["status"] == "ok");
    const Child copy(asked.reply["pid"].get<pid_t>());
    // A copy that has forked has laid down what it must not hold.
    const Child woken(wake(kernel, asked.socket, 1, false));
    std::size_t descriptors = 0;
    std::size_t sockets = 0;
    for (const auto& entry :
         std::filesystem::directory_iterator("/proc/" + std::to_string(copy.pid()) + "/fd")) {
        const std::string target = std::filesystem::read_symlink(entry.path()).string();
        CHECK_THAT(target, !Catch::StartsWith("pipe:"));
        sockets += target.starts_with("socket:") ? 1U : 0U;
        ++descriptors;
    }
    CHECK(descriptors > 4);
    CHECK(sockets == 3);  // its own, and the pair that wakes Python's event loop
    (void)info_of(kernel);
    (void)kernel.execute("_ = os.write(saved, b'saved'), os.write(1, b'one')");
    CHECK(kernel.read_stdout_until("one") == "savedone");
    (void)kernel.execute("_ = os.write(other, b'x')");
    CHECK(kernel.read_stderr() == "x");
}

TEST_CASE("other threads are refused or dropped, as asked", "[kernel][checkpoint]") {
    KernelClient kernel;
    (void)info_of(kernel);
    (void)kernel.execute(
        "import threading\n"
        "gate = threading.Event()\n"
        "threads = [threading.Thread(target=gate.wait, daemon=True) for _ in range(3)]\n"
        "for each in threads: each.start()");
    const json refused = ask(kernel).reply;
    CHECK(refused["status"] == "error");
    CHECK(refused["ename"] == "NotForkable");
    CHECK(refused["evalue"] == "threads");
    CHECK(refused["count"] == 3);
    const Asked asked = ask(kernel, "drop");
    REQUIRE(asked.reply["status"] == "ok");
    CHECK(asked.reply["lost"]["threads"] == 3);
    const Child copy(asked.reply["pid"].get<pid_t>());
    const std::string count = "print(threading.active_count(), threads[0].is_alive())";
    CHECK(text_of(kernel.execute(count), "stdout") == "4 True\n");
    const Child woken(wake(kernel, asked.socket, 1, false));
    (void)info_of(kernel);
    CHECK(text_of(kernel.execute(count), "stdout") == "1 False\n");
}

TEST_CASE("other threads go on in each process that goes on from a copy", "[kernel][checkpoint]") {
    KernelClient kernel;
    (void)info_of(kernel);
    (void)kernel.execute(
        "import os, queue, threading\n"
        "inbox, outbox, seen = queue.Queue(), queue.Queue(), []\n"
        "def serve():\n"
        "    while True: outbox.put(inbox.get() * 2)\n"
        "thread = threading.Thread(target=serve, daemon=True); thread.start()\n"
        "os.register_at_fork(before=lambda: seen.append('before'))");
    const std::string look =
        "inbox.put(21); print(outbox.get(timeout=60), threading.active_count(), *seen)";
    const Asked asked = ask(kernel, "carry");
    REQUIRE(asked.reply["status"] == "ok");
    CHECK(asked.reply["carried_threads"] == 1);
    CHECK(asked.reply["lost"]["threads"] == 0);
    const Child copy(asked.reply["pid"].get<pid_t>());
    // Nothing is lost, so no hook runs that makes good what is.
    CHECK(text_of(kernel.execute(look), "stdout") == "42 2\n");
    for (std::uint32_t turn = 1; turn <= 2; ++turn) {
        const Child woken(wake(kernel, asked.socket, turn, false));
        (void)info_of(kernel);
        CHECK(text_of(kernel.execute(look), "stdout") == "42 2\n");
    }
}

TEST_CASE("what is too much to carry is refused, and the process goes on", "[kernel][checkpoint]") {
    KernelClient kernel;
    (void)info_of(kernel);
    (void)kernel.execute(
        "import os, resource, threading\n"
        "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))\n"
        "gate = threading.Event(); _ = threading.stack_size(65536)\n"
        "def begin(count):\n"
        "    for _ in range(count): threading.Thread(target=gate.wait, daemon=True).start()\n"
        "begin(1)");
    SECTION("threads") {
        static_assert(cellkeep::sandbox::kParkedThreadsMax == 2048);
        (void)kernel.execute("begin(2048)");
    }
    SECTION("descriptors") {
        static_assert(cellkeep::sandbox::kUnsharedDescriptorsMax == 4096);
        (void)kernel.execute("events = [os.eventfd(0) for _ in range(4096)]");
    }
    const json refused = ask(kernel, "carry").reply;
    CHECK(refused["evalue"] == "system");
    CHECK(refused["count"] == E2BIG);
    const Messages after = kernel.execute("gate.set(); print('goes on')");
    CHECK(text_of(after, "stdout") == "goes on\n");
}

TEST_CASE("what a copy has not got is counted", "[kernel][checkpoint]") {
    KernelClient kernel;
    (void)info_of(kernel);
    (void)kernel.execute(
        "import mmap, socket, subprocess\n"
        "ends = socket.socketpair()\n"
        "shared = [mmap.mmap(-1, 4096)]\n"
        "children = [subprocess.Popen(['sleep', '1000']) for _ in range(2)]");
    const Asked asked = ask(kernel);
    REQUIRE(asked.reply["status"] == "ok");
    const Child copy(asked.reply["pid"].get<pid_t>());
    CHECK(
        asked.reply["lost"] ==
        json{{"threads", 0}, {"children", 2}, {"sockets", 2}, {"shared_mappings", 1}});
    (void)kernel.execute("for child in children: child.kill(); _ = child.wait()");
}

TEST_CASE("a kernel says whether tasks go on between cells", "[kernel][checkpoint]") {
    KernelClient kernel;
    (void)info_of(kernel);
    // One that waits for a cell changes nothing by itself.
    (void)kernel.execute(
        "import asyncio\ngate = asyncio.Event()\nwaiting = asyncio.create_task(gate.wait())\n"
        "await asyncio.sleep(0)");
    const Asked still = ask(kernel);
    REQUIRE(still.reply["status"] == "ok");
    const Child first(still.reply["pid"].get<pid_t>());
    CHECK(still.reply["goes_on"] == false);
    (void)kernel.execute(
        "timed = asyncio.create_task(asyncio.sleep(1000))\nawait asyncio.sleep(0)");
    const Asked moving = ask(kernel);
    REQUIRE(moving.reply["status"] == "ok");
    const Child second(moving.reply["pid"].get<pid_t>());
    CHECK(moving.reply["goes_on"] == true);
}

TEST_CASE("hooks of user code run as in any fork", "[kernel][checkpoint]") {
    KernelClient kernel;
    (void)info_of(kernel);
    (void)kernel.execute(
        "import os\nseen = []\n"
        "os.register_at_fork(before=lambda: seen.append('before'),"
        " after_in_parent=lambda: seen.append('parent'),"
        " after_in_child=lambda: seen.append('child'))");
    const Asked asked = ask(kernel);
    const Child copy(asked.reply["pid"].get<pid_t>());
    CHECK(text_of(kernel.execute("print(*seen)"), "stdout") == "before parent\n");
    const Child woken(wake(kernel, asked.socket, 1, false));
    (void)info_of(kernel);
    CHECK(text_of(kernel.execute("print(*seen)"), "stdout") == "before child\n");
    // A child of user code's is still one.
    const Messages forked = kernel.execute("pid = os.fork()\nif pid: _ = os.waitpid(pid, 0)");
    CHECK(only(forked, "execute_reply")["status"] == "ok");
}

TEST_CASE("a copy ends when its server has gone", "[kernel][checkpoint]") {
    KernelClient kernel;
    (void)info_of(kernel);
    Asked asked = ask(kernel);
    REQUIRE(asked.reply["status"] == "ok");
    asked.socket.reset();
    int status = -1;
    CHECK(::waitpid(asked.reply["pid"].get<pid_t>(), &status, 0) == asked.reply["pid"]);
    CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

TEST_CASE("a request without a descriptor is an error", "[kernel][checkpoint]") {
    KernelClient kernel;
    (void)info_of(kernel);
    (void)kernel.send(Channel::kControl, kCheckpointRequest, {{"on_threads", "refuse"}});
    CHECK(content(kernel.receive_until("cellkeep_checkpoint_reply").front())["status"] == "error");
    // The shell channel does not know it at all.
    for (const auto& message : kernel.request(std::string(kCheckpointRequest), json::object())) {
        CHECK(message.header().msg_type == "status");
    }
    CHECK(only(kernel.execute("6 * 7"), "execute_result")["data"]["text/plain"] == "42");
}
