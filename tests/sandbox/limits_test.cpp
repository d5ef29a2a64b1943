// SPDX-License-Identifier: Apache-2.0
//
// Every limit, reached from inside: it stops the session, and the sandbox and its server go on.
#include "protocol/support/syscall.hpp"
#include "tests/sandbox/fixture.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <linux/nsfs.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

namespace cellkeep::test {

using sandbox::Policy;

TEST_CASE("a memory bomb is killed, counted, and leaves the sandbox usable") {
    if (::geteuid() != 0) {
        return;  // Without a memory cgroup: see rootless_test.
    }
    Policy policy = test_policy();
    policy.limits.memory_bytes = 64ULL << 20U;
    auto sandbox = make_sandbox(policy);
    CHECK(sandbox.usage().value().oom_kills == 0);
    const Ran ran =
        run_python(sandbox, "x = bytearray(1 << 30)\nfor i in range(0, len(x), 4096): x[i] = 1\n");
    CHECK(ran.signaled);
    CHECK(ran.status == SIGKILL);
    const auto usage = sandbox.usage();
    REQUIRE(usage.has_value());
    CHECK(usage.value().oom_kills > 0);
    CHECK(usage.value().memory_peak_bytes <= policy.limits.memory_bytes);
    CHECK(usage.value().memory_peak_bytes > policy.limits.memory_bytes / 2);
    CHECK(run_inside(sandbox, {"/usr/bin/true"}).status == 0);
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("limits that went down can be put back") {
    if (::geteuid() != 0) {
        return;  // Without a memory cgroup: see rootless_test.
    }
    Policy policy = test_policy();
    auto sandbox = make_sandbox(policy);
    sandbox::LimitsChange lower;
    lower.memory_bytes = policy.limits.memory_bytes / 2;
    lower.processes = policy.limits.processes / 2;
    sandbox::LimitsChange back;
    back.memory_bytes = policy.limits.memory_bytes;
    back.processes = policy.limits.processes;
    for (int round = 0; round < 2; ++round) {
        require_ok(sandbox.change_limits(lower));
        require_ok(sandbox.change_limits(back));
    }
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("files in memory count against the memory limit") {
    if (::geteuid() != 0) {
        return;
    }
    Policy policy = test_policy();
    policy.limits.memory_bytes = 64ULL << 20U;
    policy.limits.workspace_bytes = 1ULL << 30U;
    auto sandbox = make_sandbox(policy);
    const Ran ran = run_inside(
        sandbox, {"/usr/bin/dd", "if=/dev/zero", "of=/workspace/big", "bs=1M", "count=200"});
    CHECK(ran.signaled);
    CHECK(sandbox.usage().value().oom_kills > 0);
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("of a session's processes the kernel kills a worker before pid 1") {
    auto sandbox = make_sandbox();
    CHECK(run_inside(sandbox, {"/usr/bin/cat", "/proc/self/oom_score_adj"}).out == "1000\n");
    const std::string pid1 = std::to_string(only_child());
    std::string mine;
    std::string theirs;
    std::ifstream("/proc/self/oom_score_adj") >> mine;
    std::ifstream("/proc/" + pid1 + "/oom_score_adj") >> theirs;
    CHECK(theirs == mine);
}

TEST_CASE("a fork bomb stops at the process limit") {
    Policy policy = test_policy();
    policy.limits.processes = 20;
    auto sandbox = make_sandbox(policy);
    const Ran ran = run_python(sandbox, R"(
import os, signal
children = []
try:
    while len(children) < 1000:
        pid = os.fork()
        if pid == 0:
            signal.pause()
        children.append(pid)
except OSError as error:
    print(len(children), error.errno, flush=True)
os.kill(-1, signal.SIGKILL)
)");
    // This process and 19 children: 20, and pid 1 besides.
    CHECK(ran.out == "19 11\n");
    require_ok(sandbox.kill_workers(kPatience));
    CHECK(run_inside(sandbox, {"/usr/bin/true"}).status == 0);
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("threads count as processes") {
    Policy policy = test_policy();
    policy.limits.processes = 20;
    auto sandbox = make_sandbox(policy);
    CHECK(
        run_python(sandbox, R"(
import threading
stop = threading.Event()
count = 0
try:
    while count < 1000:
        threading.Thread(target=stop.wait, daemon=True).start()
        count += 1
except RuntimeError:
    print(count)
stop.set()
)")
            .out == "19\n");
}

TEST_CASE("a full workspace answers ENOSPC, by bytes and by inodes") {
    Policy policy = test_policy();
    policy.limits.workspace_bytes = 1U << 20U;
    policy.limits.workspace_inodes = 50;
    policy.limits.tmp_bytes = 1U << 20U;
    policy.limits.shm_bytes = 1U << 20U;
    auto sandbox = make_sandbox(policy);
    for (const char* directory : {"/workspace", "/tmp", "/dev/shm"}) {
        const Ran ran = run_python(sandbox, std::string("import os\nd='") + directory + R"('
try:
    with open(d + "/fill", "wb", buffering=0) as f:
        while True: f.write(bytes(65536))
except OSError as error:
    print(error.errno, os.path.getsize(d + "/fill"))
os.unlink(d + "/fill")
)");
        CHECK(ran.out == "28 1048576\n");
    }
    CHECK(
        run_python(sandbox, R"(
count = 0
try:
    while True:
        open(f"/workspace/{count}", "w").close()
        count += 1
except OSError as error:
    print(error.errno, count)
)")
            .out == "28 49\n");  // the directory itself is the fiftieth
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("open files and file sizes are bounded, and no core is dumped") {
    Policy policy = test_policy();
    policy.limits.open_files = 64;
    policy.limits.file_bytes = 1U << 20U;
    auto sandbox = make_sandbox(policy);
    CHECK(
        run_python(sandbox, R"(
import os, resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
held = []
try:
    while True: held.append(os.open("/dev/null", os.O_RDONLY))
except OSError as error:
    print(error.errno, held[-1])
for fd in held: os.close(fd)
try:
    with open("/workspace/big", "wb") as f: f.truncate((1 << 20) + 1)
except OSError as error:
    print(error.errno)
print(resource.getrlimit(resource.RLIMIT_CORE))
try: resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
except ValueError: print("no")
)")
            .out == "24 63\n27\n(0, 0)\nno\n");
}

TEST_CASE("CPU time is counted and rationed") {
    if (::geteuid() != 0) {
        return;
    }
    Policy policy = test_policy();
    policy.limits.cpu_cores = 0.25;
    auto sandbox = make_sandbox(policy);
    // Spins for 0.15 s of CPU time; at a quarter of a core that takes 0.3 s or more of wall time.
    const Ran ran = run_python(sandbox, R"(
import time
wall, cpu = time.monotonic(), time.process_time()  # a slow machine has spent some before
while time.process_time() - cpu < 0.15: pass
print(time.monotonic() - wall >= 0.25)
)");
    CHECK(ran.out == "True\n");
    CHECK(sandbox.usage().value().cpu_time >= std::chrono::milliseconds(100));
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("a session that takes every inotify instance leaves the host and other sessions theirs") {
    Policy policy = test_policy();
    auto greedy = make_sandbox(policy);
    policy.host_uid += policy.host_uid == 0 ? 0 : 1;
    auto modest = make_sandbox(policy);
    auto out = make_pipe();
    REQUIRE(out.has_value());
    sandbox::WorkerSpec spec;
    spec.argv = {"/usr/bin/python3", "-c", R"(
import ctypes, signal
count = 0
while ctypes.CDLL(None).inotify_init1(0) >= 0: count += 1
print(count, flush=True)
signal.pause()
)"};
    spec.stdout_fd = std::move(out.value().write_end);
    spec.stderr_fd = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    auto worker = greedy.start(std::move(spec));
    REQUIRE(worker.has_value());
    REQUIRE(wait_readable(out.value().read_end.get()));
    std::array<char, 16> text{};
    REQUIRE(::read(out.value().read_end.get(), text.data(), text.size() - 1) > 0);
    CHECK(std::string(text.data()) == "32\n");
    CHECK(
        run_python(modest, "import ctypes\nprint(ctypes.CDLL(None).inotify_init1(0) >= 0)\n").out ==
        "True\n");
    const UniqueFd mine(::inotify_init1(IN_CLOEXEC));
    CHECK(mine);
    require_ok(greedy.destroy(kPatience));
    require_ok(modest.destroy(kPatience));
}

TEST_CASE("what a session uses of the kernel's per-user counters is charged to its own user") {
    if (::geteuid() != 0) {
        return;  // An ordinary user has one user id for all sessions.
    }
    auto sandbox = make_sandbox();
    const std::string pid1 = std::to_string(only_child());
    const UniqueFd inner(::open(("/proc/" + pid1 + "/ns/user").c_str(), O_RDONLY | O_CLOEXEC));
    REQUIRE(inner);
    const UniqueFd outer(::ioctl(inner.get(), NS_GET_PARENT));
    REQUIRE(outer);
    for (const UniqueFd* space : {&inner, &outer}) {
        uid_t owner = 0;
        REQUIRE(::ioctl(space->get(), NS_GET_OWNER_UID, &owner) == 0);
        CHECK(owner == kSessionUid);
    }
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("a policy of zero limits is refused") {
    const auto refused = [](auto change) {
        Policy policy = test_policy();
        change(policy.limits);
        const auto made = sandbox::Sandbox::create(policy);
        return made.has_error() && made.error().code() == ErrorCode::kInvalidArgument;
    };
    CHECK(refused([](auto& limits) { limits.memory_bytes = 0; }));
    CHECK(refused([](auto& limits) { limits.workspace_bytes = 0; }));
    CHECK(refused([](auto& limits) { limits.tmp_inodes = 0; }));
    CHECK(refused([](auto& limits) { limits.processes = 0; }));
    CHECK(refused([](auto& limits) { limits.cpu_cores = 0; }));
}

}  // namespace cellkeep::test
