// SPDX-License-Identifier: Apache-2.0
//
// What a program finds inside: who it is, what it sees, what it holds; and that ordinary programs
// work.
#include "protocol/support/syscall.hpp"
#include "tests/sandbox/fixture.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <sstream>

namespace cellkeep::test {

using sandbox::Policy;

TEST_CASE("the guest is uid and gid 1000 without groups, capabilities or hope for any") {
    auto sandbox = make_sandbox();
    CHECK(run_inside(sandbox, {"/usr/bin/id", "-u"}).out == "1000\n");
    CHECK(run_inside(sandbox, {"/usr/bin/id", "-g"}).out == "1000\n");
    CHECK(run_inside(sandbox, {"/usr/bin/id", "-un"}).out == "cellkeep\n");
    const std::string status = run_inside(sandbox, {"/usr/bin/cat", "/proc/self/status"}).out;
    for (const char* line :
         {"CapInh:\t0000000000000000\n",
          "CapPrm:\t0000000000000000\n",
          "CapEff:\t0000000000000000\n",
          "CapBnd:\t0000000000000000\n",
          "CapAmb:\t0000000000000000\n",
          "NoNewPrivs:\t1\n",
          "Seccomp:\t2\n"}) {
        CHECK_THAT(status, Catch::Contains(line));
    }
    if (::geteuid() == 0) {
        CHECK_THAT(status, Catch::Contains("Groups:\t \n"));
    }
    CHECK(
        run_inside(sandbox, {"/usr/bin/cat", "/proc/self/uid_map"}).out.find("1000") !=
        std::string::npos);
    CHECK(run_inside(sandbox, {"/usr/bin/cat", "/proc/self/setgroups"}).out == "deny\n");
}

TEST_CASE("the environment is exactly what the caller gave") {
    auto sandbox = make_sandbox();
    CHECK(run_inside(sandbox, {"/usr/bin/env"}).out.empty());
    CHECK(run_inside(sandbox, {"/usr/bin/env"}, {"ONE=1", "TWO=zwei"}).out == "ONE=1\nTWO=zwei\n");
}

TEST_CASE("the root holds what the policy lists and nothing more") {
    auto sandbox = make_sandbox();
    CHECK(
        run_inside(sandbox, {"/usr/bin/ls", "/"}).out ==
        "app\nbin\ndev\netc\nhome\nlib\nlib64\nlogs\nprobe\nproc\nsbin\nsolution\ntests\ntmp\nusr\n"
        "workspace\n");
    CHECK(
        run_inside(sandbox, {"/usr/bin/ls", "/dev"}).out ==
        "fd\nfull\nnull\nrandom\nshm\nstderr\nstdin\nstdout\nurandom\nzero\n");
    CHECK(
        run_inside(sandbox, {"/usr/bin/sh", "-c", "pwd; hostname"}).out ==
        "/workspace\ncellkeep\n");
    CHECK(run_inside(sandbox, {"/usr/bin/find", "/", "-xdev", "-type", "s"}).out.empty());
}

TEST_CASE("folders that tasks expect at the root are those of the workspace, once it has them") {
    auto sandbox = make_sandbox();
    for (const std::string name : {"app", "logs", "solution", "tests"}) {
        CAPTURE(name);
        CHECK(run_inside(sandbox, {"/usr/bin/cat", "/" + name + "/f"}).status == 1);
        const std::string make = "mkdir " + name + " && echo " + name + " >/" + name + "/f";
        CHECK(run_inside(sandbox, {"/usr/bin/sh", "-c", make}).status == 0);
        CHECK(run_inside(sandbox, {"/usr/bin/cat", name + "/f"}).out == name + "\n");
        CHECK(run_inside(sandbox, {"/usr/bin/rm", "/" + name}).status == 1);
    }
    CHECK(run_inside(sandbox, {"/usr/bin/mkdir", "/other"}).status == 1);
}

TEST_CASE("every mount is nosuid, and everything but the three private directories is read-only") {
    auto sandbox = make_sandbox();
    std::istringstream mounts(run_inside(sandbox, {"/usr/bin/cat", "/proc/self/mountinfo"}).out);
    int seen = 0;
    for (std::string line; std::getline(mounts, line); ++seen) {
        std::istringstream fields(line);
        std::string skipped;
        std::string point;
        std::string options;
        fields >> skipped >> skipped >> skipped >> skipped >> point >> options;
        INFO(line);
        options = "," + options + ",";
        const bool writable = point == "/workspace" || point == "/tmp" || point == "/dev/shm";
        const bool device = point.starts_with("/dev/") && point != "/dev/shm";
        CHECK(options.find(",nosuid,") != std::string::npos);
        CHECK((options.find(",nodev,") != std::string::npos) != device);
        CHECK((options.find(",rw,") != std::string::npos) == writable);
    }
    CHECK(seen >= 10);
}

TEST_CASE("pid 1 cannot be seen, signalled or opened from inside") {
    auto sandbox = make_sandbox();
    CHECK(run_inside(sandbox, {"/usr/bin/ls", "/proc/1"}).status != 0);
    CHECK(
        run_python(
            sandbox, "import os, signal\nos.kill(1, signal.SIGKILL)\nos.kill(1, signal.SIGSTOP)\n")
            .status == 0);
    CHECK(run_inside(sandbox, {"/usr/bin/true"}).status == 0);
}

TEST_CASE("the host's loopback and abstract sockets are out of reach") {
    auto sandbox = make_sandbox();
    const UniqueFd tcp(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    REQUIRE(::bind(tcp.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(tcp.get(), 1) == 0);
    REQUIRE(::getsockname(tcp.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
    const std::string port = std::to_string(ntohs(address.sin_port));
    CHECK(probe_inside(sandbox, {"connect_tcp", port}) == "ECONNREFUSED");
    CHECK(probe_outside({"connect_tcp", port}) == "ok");

    const std::string name = "cellkeep-test-" + std::to_string(::getpid());
    const UniqueFd local(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un abstract{};
    abstract.sun_family = AF_UNIX;
    std::memcpy(abstract.sun_path + 1, name.data(), name.size());
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    REQUIRE(::bind(local.get(), reinterpret_cast<sockaddr*>(&abstract), length) == 0);
    REQUIRE(::listen(local.get(), 1) == 0);
    CHECK(probe_inside(sandbox, {"connect_abstract", name}) == "ECONNREFUSED");
    CHECK(probe_outside({"connect_abstract", name}) == "ok");
}

TEST_CASE("two sandboxes do not see each other's files or processes") {
    auto one = make_sandbox();
    Policy policy = test_policy();
    if (policy.host_uid != 0) {
        ++policy.host_uid;
        ++policy.host_gid;
    }
    auto two = make_sandbox(policy);
    CHECK(
        run_inside(one, {"/usr/bin/touch", "/workspace/secret", "/tmp/secret", "/dev/shm/secret"})
            .status == 0);
    auto sleeper = start_inside(one, {"/usr/bin/sleep", "1000"});
    CHECK(
        run_inside(two, {"/usr/bin/ls", "/workspace", "/tmp", "/dev/shm"}).out ==
        "/dev/shm:\n\n/tmp:\n\n/workspace:\n");
    CHECK(run_inside(two, {"/usr/bin/pgrep", "sleep"}).status == 1);
    require_ok(one.destroy(kPatience));
    CHECK(run_inside(two, {"/usr/bin/true"}).status == 0);
}

TEST_CASE("a shell's pipelines, process substitution and file copies work inside") {
    auto sandbox = make_sandbox();
    const Ran ran = run_inside(
        sandbox,
        {"/bin/bash",
         "-c",
         "set -euo pipefail; echo b > x; cp -a x y; cat <(sort x y) | uniq -c | tr -d ' '; "
         "ln -s x z; tar cf - x y z | tar tf -; echo done > /dev/stderr; echo > /dev/null"});
    CHECK(ran.out == "2b\nx\ny\nz\n");
    CHECK(ran.err == "done\n");
    CHECK(ran.status == 0);
}

TEST_CASE("Python's threads, subprocesses, multiprocessing and sockets work inside") {
    auto sandbox = make_sandbox();
    const Ran ran = run_python(sandbox, R"(
import asyncio, multiprocessing, os, shutil, socket, subprocess, sys, tempfile, threading

results = []
threads = [threading.Thread(target=results.append, args=(i,)) for i in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
assert sorted(results) == list(range(8))

assert subprocess.run(["/bin/bash", "-c", "echo $((6*7)) | tr 4 4"], capture_output=True, check=True).stdout == b"42\n"
assert subprocess.check_output("echo $0; exec true; ", shell=True)

with multiprocessing.Pool(2) as pool:
    assert pool.map(abs, range(-3, 3)) == [3, 2, 1, 0, 1, 2]
context = multiprocessing.get_context("spawn")
lock = context.Lock()
queue = context.Queue()
queue.put(1); assert queue.get() == 1

async def echo():
    server = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    assert await reader.read() == b""
    writer.close()
    process = await asyncio.create_subprocess_exec("/bin/true")
    assert await process.wait() == 0
    server.close()
asyncio.run(echo())

with tempfile.TemporaryDirectory() as folder:
    source = os.path.join(folder, "a"); open(source, "wb").write(b"x" * 100000)
    shutil.copy2(source, os.path.join(folder, "b"))
    os.symlink("a", os.path.join(folder, "c"))
    os.mkfifo(os.path.join(folder, "d"))
assert socket.gethostbyname("localhost") == "127.0.0.1"
assert os.path.expanduser("~") == "/workspace"
os.posix_spawn("/bin/true", ["true"], {})
import mmap, random, signal, time, ctypes
signal.setitimer(signal.ITIMER_REAL, 100); signal.setitimer(signal.ITIMER_REAL, 0)
mmap.mmap(-1, 4096).close()
print(random.random() >= 0, time.time() > 0, ctypes.CDLL(None).getpid() > 1)
)");
    INFO(ran.err);
    CHECK(ran.out == "True True True\n");
    CHECK(ran.status == 0);
}

}  // namespace cellkeep::test
