// SPDX-License-Identifier: Apache-2.0
#include "protocol/support/syscall.hpp"
#include "sandbox/server/idle_probe.hpp"
#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace cellkeep::sandbox {

namespace {

std::string line(long number, const std::array<std::uint64_t, 6>& arguments) {
    std::string text = std::to_string(number);
    for (const std::uint64_t value : arguments) {
        std::array<char, 32> one{};
        (void)std::snprintf(
            one.data(), one.size(), " 0x%llx", static_cast<unsigned long long>(value));
        text += one.data();
    }
    return text + " 0x7ffd3b0 0x7f1c2a1\n";
}

struct Row {
    const char* claim;
    std::string line;
    bool waits;
};

constexpr std::uint64_t kForEver = 0xffffffffffffffff;
constexpr std::uint64_t kForEverInt = 0xffffffff;
constexpr std::uint64_t kPointer = 0x7ffd00;

std::vector<Row> table() {
    return {
        {"a lock", line(SYS_futex, {kPointer, FUTEX_WAIT, 2, 0, 0, 0}), true},
        {"a lock of this process, by a clock",
         line(
             SYS_futex,
             {kPointer,
              FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME,
              0,
              0,
              0,
              kForEverInt}),
         true},
        {"a lock until a time",
         line(SYS_futex, {kPointer, FUTEX_WAIT_BITSET, 0, kPointer, 0, 0}),
         false},
        {"a futex operation that wakes",
         line(SYS_futex, {kPointer, FUTEX_WAKE, 1, 0, 0, 0}),
         false},
        {"an event loop", line(SYS_epoll_pwait, {4, kPointer, 8, kForEver, 0, 8}), true},
        {"an event loop, an int's worth",
         line(SYS_epoll_pwait, {4, kPointer, 8, kForEverInt, 0, 8}),
         true},
        {"an event loop with a timer",
         line(SYS_epoll_pwait, {4, kPointer, 8, 3'600'000, 0, 8}),
         false},
        {"an event loop that does not wait",
         line(SYS_epoll_pwait, {4, kPointer, 8, 0, 0, 8}),
         false},
        {"ppoll", line(SYS_ppoll, {kPointer, 1, 0, 0, 8, 0}), true},
        {"ppoll until a time", line(SYS_ppoll, {kPointer, 1, kPointer, 0, 8, 0}), false},
        {"pselect6", line(SYS_pselect6, {4, kPointer, 0, 0, 0, 0}), true},
        {"pselect6 until a time", line(SYS_pselect6, {4, kPointer, 0, 0, kPointer, 0}), false},
        {"sigtimedwait until a time",
         line(SYS_rt_sigtimedwait, {kPointer, 0, kPointer, 8, 0, 0}),
         false},
        {"a read", line(SYS_read, {0, kPointer, 64, 0, 0, 0}), true},
        {"a server", line(SYS_accept4, {5, 0, 0, 0, 0, 0}), true},
        {"a child", line(SYS_wait4, {kForEver, 0, 0, 0, 0, 0}), true},
        {"a write that no reader takes", line(SYS_write, {3, kPointer, 64, 0, 0, 0}), false},
        {"a sleep", line(SYS_clock_nanosleep, {0, 0, kPointer, 0, 0, 0}), false},
        {"a wait with a time that was interrupted",
         line(SYS_restart_syscall, {kPointer, 1, 500, 0, 0, 0}),
         false},
        {"on a processor", "running\n", false},
        {"in no system call", "-1 0x7ffd3b0 0x7f1c2a1\n", false},
        {"nothing", "", false},
        {"a number alone", "0\n", false},
        {"an argument too few", "0 0x1 0x2 0x3 0x4 0x5\n", false},
        {"no number", "x 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8\n", false},
    };
}

/// A cgroup.procs file of these processes.
class Procs {
 public:
    explicit Procs(const std::vector<pid_t>& pids) {
        std::string text;
        for (const pid_t pid : pids) {
            text += std::to_string(pid) + "\n";
        }
        REQUIRE(write_file_atomically(path, text, 0600).has_value());
    }
    test::TemporaryDirectory directory;
    std::string path = directory.path() + "/cgroup.procs";
};

}  // namespace

TEST_CASE("what a thread waits for without a time limit", "[sandbox][rest]") {
    for (const Row& row : table()) {
        INFO(row.claim);
        CHECK(waits_without_limit(row.line) == row.waits);
    }
}

#ifdef SYS_poll
TEST_CASE("the older calls", "[sandbox][rest]") {
    CHECK(waits_without_limit(line(SYS_poll, {kPointer, 2, kForEverInt, 0, 0, 0})));
    CHECK_FALSE(waits_without_limit(line(SYS_poll, {kPointer, 2, 500, 0, 0, 0})));
    CHECK(waits_without_limit(line(SYS_epoll_wait, {4, kPointer, 8, kForEverInt, 0, 0})));
    CHECK_FALSE(waits_without_limit(line(SYS_select, {4, kPointer, 0, 0, kPointer, 0})));
    CHECK(waits_without_limit(line(SYS_pause, {0, 0, 0, 0, 0, 0})));
}
#endif

/// A child that only runs `body` in a loop, until it is killed.
class Child {
 public:
    explicit Child(void (*body)()) : pid_(::fork()) {
        REQUIRE(pid_ >= 0);
        if (pid_ == 0) {
            while (true) {
                body();
            }
        }
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    ~Child() {
        (void)::kill(pid_, SIGKILL);
        (void)::waitpid(pid_, nullptr, 0);
    }
    pid_t pid() const { return pid_; }

 private:
    pid_t pid_;
};

TEST_CASE("all threads of all processes but one are looked at", "[sandbox][rest]") {
    const Child waits([] { (void)::pause(); });
    const Child works([] { (void)::poll(nullptr, 0, 1000); });
    const Procs waiting({waits.pid()});
    const Procs working({works.pid()});
    const Procs both({waits.pid(), works.pid()});
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!all_wait_without_limit({waiting.path}, 1).value()) {
        REQUIRE(std::chrono::steady_clock::now() < deadline);  // it has just been forked
    }
    CHECK_FALSE(all_wait_without_limit({working.path}, 1).value());
    CHECK(all_wait_without_limit({working.path}, works.pid()).value());
    CHECK_FALSE(all_wait_without_limit({both.path}, 1).value());
    CHECK(all_wait_without_limit({both.path}, works.pid()).value());
    CHECK_FALSE(all_wait_without_limit({waiting.path, working.path}, 1).value());
    CHECK(all_wait_without_limit({}, 1).value());
}

TEST_CASE("as many threads as the bound are looked at, and one more is work", "[sandbox][rest]") {
    const Child waits([] { (void)::pause(); });
    const auto waits_as_often = [&waits](std::size_t count) {
        const Procs procs(std::vector<pid_t>(count, waits.pid()));
        return all_wait_without_limit({procs.path}, 1).value();
    };
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!waits_as_often(1)) {
        REQUIRE(std::chrono::steady_clock::now() < deadline);  // it has just been forked
    }
    CHECK(waits_as_often(kRestThreadsMax));
    CHECK_FALSE(waits_as_often(kRestThreadsMax + 1));
}

TEST_CASE(
    "an ended process does not count as rest, and a missing file is an error", "[sandbox][rest]") {
    const Procs gone({0x7ffffffe});
    CHECK_FALSE(all_wait_without_limit({gone.path}, 1).value());
    CHECK(all_wait_without_limit({gone.path + ".none"}, 1).has_error());
}

TEST_CASE("a pidfd gives the id of its process", "[sandbox][rest]") {
    const UniqueFd ours(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
    REQUIRE(ours);
    CHECK(pid_of(ours.get()).value() == ::getpid());
    CHECK(pid_of(-1).has_error());
    const UniqueFd none = open_file("/dev/null", 0).value();
    CHECK(pid_of(none.get()).has_error());
}

}  // namespace cellkeep::sandbox
