// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/limits/limit_reason.hpp"

#include "protocol/limits.hpp"
#include "tests/support/execute_reply.hpp"

#include <catch2/catch.hpp>

#include <cerrno>
#include <csignal>
#include <string>

using cellkeep::session::test::execute_reply;
using namespace cellkeep::session;
using nlohmann::json;
using namespace std::chrono_literals;

namespace {

ErrorFacts os_error(int number, const std::string& name = "OSError") {
    ErrorFacts facts;
    facts.name = name;
    facts.number = number;
    return facts;
}

RunCounts denied(const std::string& call) {
    RunCounts counts;
    counts.denials.push_back({call, 1});
    return counts;
}

RunCounts refused_processes() {
    RunCounts counts;
    counts.process_refusals = 1;
    return counts;
}

}  // namespace

TEST_CASE("each failure has its own reason and status", "[session][limits]") {
    ErrorFacts memory;
    memory.name = "_ArrayMemoryError";
    memory.kind = "memory";
    ErrorFacts thread;
    thread.name = "RuntimeError";
    thread.message = "can't start new thread";
    ErrorFacts child;
    child.name = "CalledProcessError";
    RunCounts killed;
    killed.oom_kills = 1;
    struct Row {
        ErrorFacts error;
        RunCounts counts;
        const char* reason;
        ExecutionStatus status;
    };
    const Row rows[] = {
        {memory, {}, "oom", ExecutionStatus::kOom},
        {os_error(ENOMEM), {}, "oom", ExecutionStatus::kOom},
        {child, killed, "oom", ExecutionStatus::kOom},
        {os_error(ENOSPC), {}, "disk_full", ExecutionStatus::kDiskFull},
        {os_error(EDQUOT), {}, "disk_full", ExecutionStatus::kDiskFull},
        {os_error(EMFILE), {}, "too_many_open_files", ExecutionStatus::kError},
        {os_error(ENFILE), {}, "too_many_open_files", ExecutionStatus::kError},
        {os_error(EFBIG), {}, "file_too_large", ExecutionStatus::kError},
        {thread, {}, "too_many_processes", ExecutionStatus::kError},
        {os_error(EAGAIN, "BlockingIOError"),
         refused_processes(),
         "too_many_processes",
         ExecutionStatus::kError},
        {child, refused_processes(), "too_many_processes", ExecutionStatus::kError},
        {os_error(EPERM, "PermissionError"),
         denied("ptrace"),
         "forbidden",
         ExecutionStatus::kDenied},
        {os_error(EAFNOSUPPORT), denied("socket"), "forbidden", ExecutionStatus::kDenied},
    };
    for (const Row& row : rows) {
        INFO(row.reason << " " << row.error.name << " " << row.error.number.value_or(0));
        const auto hit = find_limit(row.error, row.counts, SessionLimits{});
        REQUIRE(hit.has_value());
        CHECK(to_string(hit->reason) == row.reason);
        CHECK(status_of(hit->reason) == row.status);
        CHECK_FALSE(hit->message.empty());
        CHECK_FALSE(hit->hint.empty());
    }
}

TEST_CASE("an ordinary failure has no limit as its reason", "[session][limits]") {
    ErrorFacts value_error;
    value_error.name = "ValueError";
    CHECK_FALSE(find_limit(value_error, {}, SessionLimits{}).has_value());
    // A file of root; a socket with nothing to read; refusals that did not cause the failure.
    CHECK_FALSE(find_limit(os_error(EACCES, "PermissionError"), {}, SessionLimits{}).has_value());
    CHECK_FALSE(find_limit(os_error(EAGAIN, "BlockingIOError"), {}, SessionLimits{}).has_value());
    CHECK_FALSE(find_limit(os_error(ENOENT), denied("ptrace"), SessionLimits{}).has_value());
    CHECK_FALSE(find_limit(value_error, denied("ptrace"), SessionLimits{}).has_value());
    CHECK_FALSE(find_limit(value_error, refused_processes(), SessionLimits{}).has_value());
}

TEST_CASE("hints contain the numbers", "[session][limits]") {
    SessionLimits limits;
    limits.memory_mb = 333;
    limits.disk_mb = 77;
    limits.processes = 13;
    const auto hint = [&](const ErrorFacts& error, const RunCounts& counts = {}) {
        const auto hit = find_limit(error, counts, limits);
        return hit->message + " " + hit->hint;
    };
    CHECK_THAT(hint(os_error(ENOMEM)), Catch::Contains("333"));
    CHECK_THAT(hint(os_error(EAGAIN), refused_processes()), Catch::Contains("13"));
    CHECK_THAT(hint(os_error(EMFILE)), Catch::Contains("1024"));
    CHECK_THAT(hint(os_error(EFBIG)), Catch::Contains("4096 MB"));
    ErrorFacts disk = os_error(ENOSPC);
    CHECK_THAT(hint(disk), Catch::Contains("77 MB"));
    disk.full = "/workspace";
    CHECK_THAT(hint(disk), Catch::Contains("77 MB") && Catch::Contains("disk_mb"));
    disk.full = "/tmp";
    CHECK_THAT(hint(disk), Catch::Contains("/tmp is full (limit 100 MB)"));
    disk.full = "/dev/shm";
    CHECK_THAT(hint(disk), Catch::Contains("64 MB"));
    disk.full = "/tmp";
    disk.inodes = true;
    CHECK_THAT(hint(disk), Catch::Contains("10000 files"));
    disk.full = "/etc/passwd";  // the guest's word: it decides about its own answer only
    CHECK_THAT(hint(disk), !Catch::Contains("passwd"));
    CHECK_THAT(hint(os_error(EPERM), denied("ptrace")), Catch::Contains("ptrace"));
}

TEST_CASE("the reason of a cut says what was used", "[session][limits]") {
    SessionLimits limits;
    CutFacts cut;
    CHECK_FALSE(find_limit(cut, limits).has_value());
    cut.cut = Cut::kInterrupt;
    CHECK_FALSE(find_limit(cut, limits).has_value());
    cut.cut = Cut::kWallTimeout;
    cut.time = 1500ms;
    CHECK(find_limit(cut, limits)->reason == LimitReason::kWallTimeout);
    CHECK_THAT(find_limit(cut, limits)->message, Catch::Contains("1.5 s"));
    CHECK_THAT(find_limit(cut, limits)->hint, Catch::Contains("30000"));
    cut.from_budget = true;
    CHECK_THAT(find_limit(cut, limits)->message, Catch::Contains("total_wall_ms"));
    cut.cut = Cut::kCpuTimeout;
    CHECK(find_limit(cut, limits)->reason == LimitReason::kCpuTimeout);
    CHECK_THAT(find_limit(cut, limits)->message, Catch::Contains("total_cpu_ms"));
    cut.cut = Cut::kOutputLimit;
    cut.bytes = 123;
    cut.messages = 45;
    CHECK(find_limit(cut, limits)->reason == LimitReason::kOutputLimit);
    CHECK_THAT(
        find_limit(cut, limits)->message,
        Catch::Contains("123 bytes") && Catch::Contains("45 messages"));
    CHECK_THAT(find_limit(cut, limits)->message, Catch::Contains("total_output_bytes"));
    cut.from_budget = false;
    CHECK_THAT(
        find_limit(cut, limits)->message,
        Catch::Contains(std::to_string(cellkeep::limits::kOutputCutBytes)));
    cut.by_messages = true;
    CHECK_THAT(
        find_limit(cut, limits)->message,
        Catch::Contains(std::to_string(cellkeep::limits::kOutputCutMessages)));
}

TEST_CASE("a death from a limit has that limit as its reason", "[session][limits]") {
    const SessionLimits limits;
    CHECK(find_limit(Death{Death::Kind::kOom, 0}, {}, limits)->reason == LimitReason::kOom);
    const auto filtered = find_limit(Death{Death::Kind::kSignal, SIGSYS}, denied("bpf"), limits);
    REQUIRE(filtered.has_value());
    CHECK(filtered->reason == LimitReason::kForbidden);
    CHECK_THAT(filtered->message, Catch::Contains("bpf"));
    CHECK(find_limit(Death{Death::Kind::kSignal, SIGSYS}, {}, limits).has_value());
    CHECK(
        find_limit(Death{Death::Kind::kSignal, SIGXFSZ}, {}, limits)->reason ==
        LimitReason::kFileTooLarge);
    for (const Death& other :
         {Death{Death::Kind::kSignal, SIGSEGV},
          Death{Death::Kind::kExited, 1},
          Death{Death::Kind::kRequested, 0},
          Death{Death::Kind::kSandboxDied, 0}}) {
        CHECK_FALSE(find_limit(other, {}, limits).has_value());
    }
}

TEST_CASE("a death is caused by the code or from outside", "[session][limits]") {
    CHECK(is_own_fault({Death::Kind::kSignal, SIGSEGV}));
    CHECK(is_own_fault({Death::Kind::kOom, 0}));
    CHECK(is_own_fault({Death::Kind::kOutputLimit, 0}));
    CHECK_FALSE(is_own_fault({Death::Kind::kRequested, 0}));
    CHECK_FALSE(is_own_fault({Death::Kind::kCulled, 0}));
    CHECK_FALSE(is_own_fault({Death::Kind::kSandboxDied, 0}));
    CHECK(death_after(Cut::kOutputLimit) == Death::Kind::kOutputLimit);
    CHECK(death_after(Cut::kCpuTimeout) == Death::Kind::kCpuTimeout);
    CHECK(death_after(Cut::kWallTimeout) == Death::Kind::kWallTimeout);
}

TEST_CASE("an interpreter's error is read, and nonsense is nothing", "[session][limits]") {
    CHECK_FALSE(read_error(execute_reply({{"status", "ok"}})).has_value());
    CHECK_FALSE(read_error(execute_reply({{"status", 3}})).has_value());
    auto facts = read_error(execute_reply(
        {{"status", "error"}, {"ename", "OSError"}, {"evalue", "[Errno 28] No space left"}}));
    REQUIRE(facts.has_value());
    CHECK(facts->name == "OSError");
    CHECK(facts->number == ENOSPC);  // of an interpreter that says no number
    facts = read_error(execute_reply(
        {{"status", "error"}, {"ename", "E"}, {"evalue", "[Errno 28] x"}},
        {{"cellkeep",
          {{"error", {{"kind", "runtime"}, {"errno", 24}, {"full", "/tmp"}, {"inodes", true}}}}}}));
    CHECK(facts->number == EMFILE);
    CHECK(facts->full == "/tmp");
    CHECK(facts->inodes);
    for (const json& wrong : {json("28"), json(-1), json(0), json(99999), json(nullptr)}) {
        facts = read_error(execute_reply(
            {{"status", "error"}}, {{"cellkeep", {{"error", {{"errno", wrong}, {"full", 3}}}}}}));
        REQUIRE(facts.has_value());
        CHECK_FALSE(facts->number.has_value());
        CHECK(facts->full.empty());
    }
    for (const char* text :
         {"[Errno ", "[Errno 28", "[Errno x]", "[Errno 99999999999]", "Errno 28"}) {
        facts = read_error(execute_reply({{"status", "error"}, {"evalue", text}}));
        CHECK_FALSE(facts->number.has_value());
    }
}

TEST_CASE("a limit is written into an answer beside the code's own error", "[session][limits]") {
    const LimitHit hit{
        LimitReason::kForbidden, "The sandbox refused the system call ptrace.", "No."};
    ExecutionResult with_error;
    with_error.error.emplace();
    with_error.error->name = "PermissionError";
    with_error.error->message = "[Errno 1] Operation not permitted";
    with_error.error->kind = "runtime";
    apply(hit, with_error);
    CHECK(with_error.status == ExecutionStatus::kDenied);
    CHECK(with_error.error->kind == "forbidden");
    CHECK(with_error.error->name == "PermissionError");
    CHECK(
        with_error.error->message ==
        "[Errno 1] Operation not permitted — The sandbox refused the system call ptrace.");
    CHECK(with_error.error->hint == "No.");
    ExecutionResult dead;
    dead.error.emplace();
    dead.error->message = "The interpreter was killed.";
    dead.death = Death{Death::Kind::kWallTimeout, 0};
    dead.state_kept = false;
    apply({LimitReason::kWallTimeout, "It took 1 s.", "Do less."}, dead);
    CHECK(dead.error->message == "It took 1 s. The interpreter was killed.");
    CHECK_THAT(
        dead.error->hint, Catch::StartsWith("Do less.") && Catch::Contains("files are kept"));
    ExecutionResult without;
    apply(hit, without);
    CHECK(without.error->message == hit.message);
    CHECK_FALSE(without.error->name.empty());
}
