// SPDX-License-Identifier: Apache-2.0
//
// Forks that a kernel's copy makes before anybody wants one (sandbox/inside/copy/ready_fork.hpp).
#include "protocol/support/syscall.hpp"
#include "sandbox/shared/sleep_messages.hpp"
#include "tests/integration/kernel/copies.hpp"
#include "tests/support/kernel_client.hpp"

#include <catch2/catch.hpp>

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <span>
#include <string>

using cellkeep::UniqueFd;
using cellkeep::sandbox::WakeKind;
using cellkeep::sandbox::WakeReply;
using cellkeep::sandbox::WakeRequest;
using cellkeep::test::ask;
using cellkeep::test::Asked;
using cellkeep::test::Child;
using cellkeep::test::info_of;
using cellkeep::test::KernelClient;
using cellkeep::test::read_reply;
using cellkeep::test::text_of;
using cellkeep::test::wake;

namespace {

/// For what comes without descriptors. Returns what the copy says.
pid_t tell(const UniqueFd& socket, std::uint32_t sequence, WakeKind kind) {
    const WakeRequest request{sequence, 0, kind};
    REQUIRE(::send(socket.get(), &request, sizeof(request), MSG_NOSIGNAL) == sizeof(request));
    const WakeReply reply = read_reply(socket);
    CHECK(reply.sequence == sequence);
    return reply.forked;
}

/// Precondition: it is a child of the test, which ends soon.
int wait_end(pid_t pid) {
    int status = 0;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    return status;
}

}  // namespace

TEST_CASE("a fork that was made before is the next to go on", "[kernel][checkpoint]") {
    KernelClient kernel;
    (void)info_of(kernel);
    (void)kernel.execute(
        "import os; seen = []; number = 7\n"
        "os.register_at_fork(after_in_child=lambda: seen.append('child'))");
    const Asked asked = ask(kernel);
    REQUIRE(asked.reply["prepares"] == true);
    const Child copy(asked.reply["pid"].get<pid_t>());
    (void)kernel.execute("number = 8");
    const std::string look = "print(number, *seen, len(os.listdir('/proc/self/fd')))";
    std::string directly;
    {
        const Child woken(wake(kernel, asked.socket, 1, false));
        (void)info_of(kernel);
        directly = text_of(kernel.execute(look), "stdout");
        CHECK_THAT(directly, Catch::StartsWith("7 child "));
    }
    for (std::uint32_t turn = 2; turn <= 4; turn += 2) {
        const pid_t ready = tell(asked.socket, turn, WakeKind::kPrepare);
        REQUIRE(ready > 1);
        const Child woken(wake(kernel, asked.socket, turn + 1, false));
        CHECK(woken.pid() == ready);
        (void)info_of(kernel);
        // Nor has it a descriptor more than one that was forked when it was wanted.
        CHECK(text_of(kernel.execute(look), "stdout") == directly);
    }
    const Child last(wake(kernel, asked.socket, 6, false));
    (void)info_of(kernel);
    CHECK(text_of(kernel.execute(look), "stdout") == directly);
}

TEST_CASE("a fork that waits ends with its copy, or when it is let go", "[kernel][checkpoint]") {
    KernelClient kernel;
    (void)info_of(kernel);
    const Asked asked = ask(kernel);
    const auto copy = asked.reply["pid"].get<pid_t>();
    const pid_t ready = tell(asked.socket, 1, WakeKind::kPrepare);
    REQUIRE(ready > 1);
    SECTION("its copy is killed") {
        const Child dead(copy);
        REQUIRE(::kill(copy, SIGKILL) == 0);
        CHECK(wait_end(ready) == 0);
    }
    SECTION("it is let go") {
        const Child alive(copy);
        CHECK(tell(asked.socket, 2, WakeKind::kLetGo) == copy);
        CHECK(wait_end(ready) == 0);
        // Of none that is there.
        CHECK(tell(asked.socket, 3, WakeKind::kLetGo) == copy);
    }
    SECTION("another takes its place") {
        const Child alive(copy);
        const pid_t next = tell(asked.socket, 2, WakeKind::kPrepare);
        CHECK(next > 1);
        CHECK(next != ready);
        CHECK(wait_end(ready) == 0);
        REQUIRE(::kill(next, SIGKILL) == 0);
        (void)wait_end(next);
    }
    SECTION("it is killed: the copy forks when it is asked to") {
        const Child alive(copy);
        REQUIRE(::kill(ready, SIGKILL) == 0);
        (void)wait_end(ready);
        const Child woken(wake(kernel, asked.socket, 2, false));
        CHECK(woken.pid() != ready);
        (void)info_of(kernel);
        CHECK(text_of(kernel.execute("print(6 * 7)"), "stdout") == "42\n");
    }
}

TEST_CASE("a fork that waits carries threads as well", "[kernel][checkpoint]") {
    KernelClient kernel;
    (void)info_of(kernel);
    (void)kernel.execute(
        "import queue, threading\n"
        "inbox, outbox = queue.Queue(), queue.Queue()\n"
        "def serve():\n"
        "    while True: outbox.put(inbox.get() * 2)\n"
        "threading.Thread(target=serve, daemon=True).start()");
    const Asked asked = ask(kernel, "carry");
    REQUIRE(asked.reply["carried_threads"] == 1);
    const Child copy(asked.reply["pid"].get<pid_t>());
    const pid_t ready = tell(asked.socket, 1, WakeKind::kPrepare);
    const Child woken(wake(kernel, asked.socket, 2, false));
    CHECK(woken.pid() == ready);
    (void)info_of(kernel);
    const std::string look = "inbox.put(21); print(outbox.get(timeout=60))";
    CHECK(text_of(kernel.execute(look), "stdout") == "42\n");
}

TEST_CASE("a copy that is told nonsense ends, and with it its fork", "[kernel][checkpoint]") {
    KernelClient kernel;
    (void)info_of(kernel);
    const Asked asked = ask(kernel);
    const auto copy = asked.reply["pid"].get<pid_t>();
    const pid_t ready = tell(asked.socket, 1, WakeKind::kPrepare);
    SECTION("descriptors that are none of the request's") {
        const WakeRequest request{2, 0, WakeKind::kPrepare};
        const std::array<int, 1> fds{asked.socket.get()};
        REQUIRE(cellkeep::send_with_fds(
                    asked.socket.get(),
                    std::as_bytes(std::span(&request, 1)),
                    std::span<const int>(fds))
                    .has_value());
    }
    SECTION("no descriptors for a process that goes on") {
        const WakeRequest request{2, 0, WakeKind::kGoOn};
        REQUIRE(::send(asked.socket.get(), &request, sizeof(request), 0) == sizeof(request));
    }
    SECTION("half a request") {
        REQUIRE(::send(asked.socket.get(), "abcd", 4, 0) == 4);
    }
    CHECK(WEXITSTATUS(wait_end(copy)) == 70);
    CHECK(wait_end(ready) == 0);
}
