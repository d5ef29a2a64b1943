// SPDX-License-Identifier: Apache-2.0
//
// Two sandboxes that try to find each other. Where the filter alone would refuse, the pair runs
// without it, and as one user: then only the namespaces separate them.
#include "protocol/support/syscall.hpp"
#include "tests/sandbox/bare_sandbox.hpp"
#include "tests/sandbox/fixture.hpp"
#include "tests/sandbox/test_zygote.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <linux/keyctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>

namespace cellkeep::test {

using sandbox::Policy;
using sandbox::Sandbox;
using sandbox::WorkerSpec;

namespace {

/// Root's sessions get a user that no other test's sessions have, even of a run beside this one:
/// the kernel counts some things for each user.
Policy own_user_policy() {
    Policy policy = test_policy();
    if (policy.host_uid != 0) {
        const bool zygote = zygote_for(policy) != nullptr;
        policy.host_uid += 2U * (1U + static_cast<uid_t>(::getpid()) % 90U) + (zygote ? 1U : 0U);
        policy.host_gid = policy.host_uid;
    }
    return policy;
}

struct Pair {
    explicit Pair(const Policy& policy = test_policy())
        : one(make_sandbox(policy)), two(make_sandbox(policy)) {}

    Sandbox one;
    Sandbox two;  // of the same user, even as root

    void end() {
        require_ok(one.destroy(kPatience));
        require_ok(two.destroy(kPatience));
    }
};

/// A Python program in one sandbox that prints a line and then waits.
struct Resident {
    UniqueFd out;
    sandbox::Worker worker;
    std::string line;

    Resident(Sandbox& sandbox, const std::string& code) {
        auto pipe = make_pipe();
        WorkerSpec spec;
        spec.argv = {"/usr/bin/python3", "-c", code + "\nimport time\nwhile True: time.sleep(99)"};
        spec.stdout_fd = std::move(pipe.value().write_end);
        spec.stderr_fd = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
        auto started = sandbox.start(std::move(spec));
        REQUIRE(started.has_value());
        worker = std::move(started).value();
        out = std::move(pipe.value().read_end);
        REQUIRE(wait_readable(out.get()));
        std::array<char, 256> buffer{};
        const ssize_t got = ::read(out.get(), buffer.data(), buffer.size());
        REQUIRE(got > 0);
        line.assign(buffer.data(), static_cast<std::size_t>(got - 1));
    }
};

}  // namespace

TEST_CASE("a neighbour's processes are neither seen nor signalled, by any number") {
    Pair pair;
    const Resident resident(pair.one, "import os\nprint(os.getpid(), flush=True)");
    const auto hunt = [](const std::string& signal) {
        return "signal = " + signal + R"(
import os
me, found = os.getpid(), 0
for pid in [*range(2, 3000), -1]:
    if pid == me: continue
    try: os.kill(pid, signal); found += 1
    except ProcessLookupError: pass
print(found, [p for p in os.listdir("/proc") if p.isdigit() and int(p) != me])
)";
    };
    CHECK(run_python(pair.two, hunt("9")).out == "0 []\n");
    // The positive control: the same hunt, without a signal, where the resident lives.
    CHECK(run_python(pair.one, hunt("0")).out == "2 ['" + resident.line + "']\n");
    pair.end();
}

TEST_CASE("a neighbour's abstract and network sockets are out of reach, and so is every address") {
    Pair pair;
    const Resident resident(pair.one, R"(
import socket
local = socket.socket(socket.AF_UNIX); local.bind("\0meeting"); local.listen()
tcp = socket.create_server(("127.0.0.1", 0)); six = socket.create_server(("::1", 0), family=socket.AF_INET6)
print(tcp.getsockname()[1], six.getsockname()[1], flush=True)
)");
    const std::string knock = R"(
import errno, socket
def knock(family, address):
    s = socket.socket(family); s.settimeout(5)
    try: s.connect(address); return "met"
    except OSError as error: return errno.errorcode[error.errno]
ports = ")" + resident.line + R"(".split()
print(knock(socket.AF_UNIX, "\0meeting"), knock(socket.AF_INET, ("127.0.0.1", int(ports[0]))),
      knock(socket.AF_INET6, ("::1", int(ports[1]))),
      knock(socket.AF_INET, ("192.0.2.1", 80)), knock(socket.AF_INET, ("169.254.169.254", 80)),
      knock(socket.AF_INET6, ("2001:db8::1", 80)))
)";
    CHECK(
        run_python(pair.two, knock).out ==
        "ECONNREFUSED ECONNREFUSED ECONNREFUSED ENETUNREACH ENETUNREACH ENETUNREACH\n");
    CHECK_THAT(run_python(pair.one, knock).out, Catch::StartsWith("met met met ENETUNREACH"));
    pair.end();
}

TEST_CASE("a neighbour's files in memory are not there, under any of their names") {
    Pair pair;
    const Resident resident(pair.one, R"(
import os
for folder in ("/workspace", "/tmp", "/dev/shm"): open(folder + "/meeting", "w").write("here")
memory = os.memfd_create("meeting"); os.write(memory, b"here")
print(f"/proc/{os.getpid()}/fd/{memory}", flush=True)
)");
    const std::string look = R"(
import os
print(*(os.path.exists(p) for p in
        ("/workspace/meeting", "/tmp/meeting", "/dev/shm/meeting", ")" +
                             resident.line + R"(")), len(os.listdir("/dev/shm")))
)";
    CHECK(run_python(pair.two, look).out == "False False False False 0\n");
    CHECK(run_python(pair.one, look).out == "True True True True 1\n");
    pair.end();
}

TEST_CASE("without the filter shared memory and message queues by key are each session's own") {
    const auto one = launch_without_filter();
    const auto two = launch_without_filter();
    const std::string key = std::to_string(0x6b000000 + ::getpid());
    const std::string create = std::to_string(01000 | 0600);  // IPC_CREAT
    CHECK(probe(one, {"syscall", std::to_string(SYS_shmget), key, "4096", create}) == "ok");
    CHECK(probe(one, {"syscall", std::to_string(SYS_shmget), key, "4096", "0"}) == "ok");
    CHECK(probe(two, {"syscall", std::to_string(SYS_shmget), key, "4096", "0"}) == "ENOENT");
    CHECK(probe_outside({"syscall", std::to_string(SYS_shmget), key, "4096", "0"}) == "ENOENT");
    CHECK(probe(one, {"syscall", std::to_string(SYS_semget), key, "1", create}) == "ok");
    CHECK(probe(two, {"syscall", std::to_string(SYS_semget), key, "1", "0"}) == "ENOENT");
    require_ok(sandbox::kill_and_reap(one.pidfd, kPatience));
    require_ok(sandbox::kill_and_reap(two.pidfd, kPatience));
}

TEST_CASE("without the filter keys are each session's own, and the server's are not there") {
    const auto key_of = [](const char* who) {
        return std::string("cellkeep-") + who + "-" + std::to_string(::getpid());
    };
    constexpr const char* kSession = "-3";
    constexpr const char* kUser = "-4";
    // In a keyring of this test's own, which its child processes would inherit.
    REQUIRE(::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr) >= 0);
    REQUIRE(probe_outside({"plant_key", kSession, key_of("host")}) == "ok");
    REQUIRE(probe_outside({"find_key", kSession, key_of("host")}) == "ok");
    const auto one = launch_without_filter();
    const auto two = launch_without_filter();
    CHECK(probe(one, {"find_key", kSession, key_of("host")}) == "ENOKEY");
    for (const char* ring : {kSession, kUser}) {
        CHECK(probe(one, {"plant_key", ring, key_of("one")}) == "ok");
        CHECK(probe(one, {"find_key", ring, key_of("one")}) == "ok");
        CHECK(probe(two, {"find_key", ring, key_of("one")}) == "ENOKEY");
        CHECK(probe_outside({"find_key", ring, key_of("one")}) == "ENOKEY");
    }
    require_ok(sandbox::kill_and_reap(one.pidfd, kPatience));
    require_ok(sandbox::kill_and_reap(two.pidfd, kPatience));
}

TEST_CASE(
    "reading a shared file leaves no time stamp for a neighbour, and touching it is refused") {
    const std::string file =
        std::filesystem::temp_directory_path() / ("cellkeep-shared-" + std::to_string(::getpid()));
    std::ofstream(file) << "shared";
    const std::array<timespec, 2> old{{{1'000'000'000, 0}, {1'000'000'000, 0}}};
    REQUIRE(::utimensat(AT_FDCWD, file.c_str(), old.data(), 0) == 0);
    Policy policy = test_policy();
    policy.read_only.push_back({file, "/shared"});
    auto one = make_sandbox(policy);
    auto two = make_sandbox(policy);
    const std::string times =
        "import os\ns = os.stat('/shared')\n"
        "print(int(s.st_atime), int(s.st_mtime), int(s.st_ctime))\n";
    const std::string before = run_python(two, times).out;
    CHECK(
        run_python(one, R"(
import os
print(open("/shared").read())
for change in (lambda: os.utime("/shared"), lambda: os.chmod("/shared", 0o777),
               lambda: os.link("/shared", "/tmp/link"), lambda: open("/shared", "a")):
    try: change(); print("changed")
    except OSError: print("refused")
)")
            .out == "shared\nrefused\nrefused\nrefused\nrefused\n");
    CHECK(run_python(two, times).out == before);
    CHECK_THAT(before, Catch::StartsWith("1000000000 1000000000 "));
    require_ok(one.destroy(kPatience));
    require_ok(two.destroy(kPatience));
    REQUIRE(std::filesystem::remove(file));
}

TEST_CASE("descriptors that a session leaves in flight keep no neighbour from starting workers") {
    const Policy policy = own_user_policy();
    Pair pair(policy);
    // sendmsg(2) fails with ETOOMANYREFS once the user has more descriptors in flight than the
    // sender may have open (unix(7)).
    const std::string send = R"(
import array, errno, os, socket
null = os.open("/dev/null", os.O_RDONLY)
pairs = []
def send(count):
    pairs.append(socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
    rights = array.array("i", [null] * count)
    try: pairs[-1][0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)]); return "sent"
    except OSError as error: return errno.errorcode[error.errno]
)";
    CHECK(run_python(pair.two, send + "print(send(1))").out == "sent\n");
    const Resident greedy(
        pair.one, send + "while (answer := send(250)) == 'sent': pass\nprint(answer, flush=True)");
    REQUIRE(greedy.line == "ETOOMANYREFS");
    // The positive control: the user's counter is used up for processes with a session's limit.
    CHECK(run_python(pair.two, send + "print(send(1))").out == "ETOOMANYREFS\n");
    Sandbox third = make_sandbox(policy);
    CHECK(run_python(third, "print(1)").out == "1\n");
    CHECK(run_python(pair.one, "print(1)").out == "1\n");
    require_ok(third.destroy(kPatience));
    pair.end();
}

TEST_CASE("what a neighbour changes of its own machine is not seen") {
    Pair pair;
    const std::string look = "import os\nprint(os.uname().nodename, os.nice(0))";
    const std::string before = run_python(pair.two, look).out;
    const Resident resident(pair.one, "import os\nos.umask(0)\nos.nice(5)\nprint(1, flush=True)");
    CHECK(run_python(pair.two, look).out == before);
    CHECK_THAT(before, Catch::StartsWith("cellkeep "));
    CHECK(
        run_inside(pair.two, {"/usr/bin/cat", "/proc/self/cgroup"}).out.find("session-") ==
        std::string::npos);
    pair.end();
}

}  // namespace cellkeep::test
