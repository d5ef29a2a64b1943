// SPDX-License-Identifier: Apache-2.0
//
// The session's network: who owns it, what listens in it, and that there is no other way out.
#include "protocol/support/syscall.hpp"
#include "sandbox/cgroup/memory_limit.hpp"
#include "sandbox/server/network_pool.hpp"
#include "tests/sandbox/bare_sandbox.hpp"
#include "tests/sandbox/fixture.hpp"

#include <catch2/catch.hpp>

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <set>

namespace cellkeep::test {

using sandbox::kProxyBacklog;
using sandbox::kProxyPort;
using sandbox::NetworkMode;
using sandbox::Policy;
using sandbox::Sandbox;

namespace {

constexpr const char* kTalkToProxy = R"(
import socket
with socket.create_connection(("127.0.0.1", 3128), timeout=20) as proxy:
    proxy.sendall(b"hello proxy")
    proxy.shutdown(socket.SHUT_WR)
    print(proxy.recv(100).decode())
)";

constexpr const char* kServeOnLoopback = R"(
import http.server, threading, urllib.request, multiprocessing.managers
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
print(direct.open("http://127.0.0.1:%d/" % server.server_port).status)
server.shutdown()
manager = multiprocessing.managers.SyncManager(address=("127.0.0.1", 0), authkey=b"k")
manager.start()
print(list(manager.list([1, 2])))
manager.shutdown()
)";

constexpr const char* kTryOtherWays = R"(
import errno, socket
def attempt(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.settimeout(5)
        try: s.connect(address); print("connected")
        except OSError as error: print(errno.errorcode.get(error.errno, str(error)))
attempt(socket.AF_INET, ("192.0.2.1", 80))
attempt(socket.AF_INET, ("169.254.169.254", 80))
attempt(socket.AF_INET, ("127.0.0.1", 3129))
attempt(socket.AF_INET6, ("2001:db8::1", 80))
)";

Policy proxy_policy() {
    Policy policy = test_policy();
    policy.network = NetworkMode::kProxy;
    return policy;
}

UniqueFd accept_one(const UniqueFd& listener) {
    REQUIRE(wait_readable(listener.get()));
    UniqueFd accepted(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    REQUIRE(accepted);
    return accepted;
}

/// Lets the guest talk to this process over the listener, and checks both sides.
void check_proxy_works(Sandbox& sandbox, const UniqueFd& listener) {
    auto out = make_pipe();
    REQUIRE(out.has_value());
    sandbox::WorkerSpec spec;
    spec.argv = {"/usr/bin/python3", "-c", kTalkToProxy};
    spec.stdout_fd = std::move(out.value().write_end);
    spec.stderr_fd = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    REQUIRE(sandbox.start(std::move(spec)).has_value());
    const UniqueFd guest = accept_one(listener);
    CHECK(read_all(guest.get()) == "hello proxy");
    require_ok(write_all(guest.get(), "hello guest"));
    CHECK(read_all(out.value().read_end.get()) == "hello guest\n");
    CHECK(wait_event(sandbox).worker.status == 0);
}

std::string mechanism_of(const Sandbox& sandbox, std::string_view name) {
    for (const auto& control : sandbox.isolation().controls) {
        if (control.name == name) {
            return control.mechanism;
        }
    }
    return "no such control";
}

/// The device and inode, which identify the namespace.
std::pair<dev_t, ino_t> identity_of(int fd) {
    struct stat info {};
    REQUIRE(::fstat(fd, &info) == 0);
    return {info.st_dev, info.st_ino};
}

}  // namespace

TEST_CASE(
    "a session with a proxy reaches the server's listener, its own loopback, and nothing else") {
    auto sandbox = make_sandbox(proxy_policy());
    const UniqueFd listener = sandbox.take_proxy_listener();
    REQUIRE(listener);
    CHECK_FALSE(sandbox.take_proxy_listener());  // once
    CHECK((::fcntl(listener.get(), F_GETFL) & O_NONBLOCK) != 0);
    CHECK((::fcntl(listener.get(), F_GETFD) & FD_CLOEXEC) != 0);
    CHECK(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC) < 0);
    check_proxy_works(sandbox, listener);
    const Ran served = run_python(sandbox, kServeOnLoopback);
    CHECK(served.err.find("Traceback") == std::string::npos);
    CHECK(served.out == "200\n[1, 2]\n");
    CHECK(
        run_python(sandbox, kTryOtherWays).out ==
        "ENETUNREACH\nENETUNREACH\nECONNREFUSED\nENETUNREACH\n");
    // The control: outside the same port is not ours, and no process listens there.
    CHECK(probe_outside({"connect_tcp", std::to_string(kProxyPort)}) == "ECONNREFUSED");
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("a session without a proxy has no listener, and its port refuses connections") {
    auto sandbox = make_sandbox();
    CHECK_FALSE(sandbox.take_proxy_listener());
    CHECK(probe_inside(sandbox, {"connect_tcp", std::to_string(kProxyPort)}) == "ECONNREFUSED");
    auto with_proxy = make_sandbox(proxy_policy());
    CHECK(probe_inside(with_proxy, {"connect_tcp", std::to_string(kProxyPort)}) == "ok");
    // When the server closes the listener, the guest has no way out.
    sandbox::stop_listening(with_proxy.take_proxy_listener());
    CHECK(probe_inside(with_proxy, {"connect_tcp", std::to_string(kProxyPort)}) == "ECONNREFUSED");
    require_ok(sandbox.destroy(kPatience));
    require_ok(with_proxy.destroy(kPatience));
}

TEST_CASE("a guest cannot listen in the proxy's place") {
    auto sandbox = make_sandbox(proxy_policy());
    CHECK(
        run_python(sandbox, R"(
import errno, socket
for address in ("127.0.0.1", "0.0.0.0"):
    for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, option, 1)
            try: s.bind((address, 3128)); s.listen(); print("listens")
            except OSError as error: print(errno.errorcode[error.errno])
)")
            .out == "EADDRINUSE\nEADDRINUSE\nEADDRINUSE\nEADDRINUSE\n");
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("as many connections wait for the server as there may be, and no more") {
    auto sandbox = make_sandbox(proxy_policy());
    const UniqueFd listener = sandbox.take_proxy_listener();
    const auto waiting = [&] {
        tcp_info info{};
        socklen_t size = sizeof(info);
        REQUIRE(::getsockopt(listener.get(), IPPROTO_TCP, TCP_INFO, &info, &size) == 0);
        CHECK(info.tcpi_sacked == kProxyBacklog);    // of a listener: the most that may wait
        return static_cast<int>(info.tcpi_unacked);  // and how many do
    };
    constexpr const char* kConnect = R"(
import socket, sys
held = [socket.socket() for _ in range(int(sys.argv[1]))]
for s in held:
    s.setblocking(False)
    s.connect_ex(("127.0.0.1", 3128))
)";
    const auto connect = [&](int count) {
        CHECK(
            run_inside(sandbox, {"/usr/bin/python3", "-c", kConnect, std::to_string(count)})
                .status == 0);
    };
    connect(kProxyBacklog);
    CHECK(waiting() == kProxyBacklog);
    connect(10);
    CHECK(waiting() == kProxyBacklog + 1);  // the kernel lets one more in (listen(2))
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("sockets hold no more than the session may have") {
    // Both kinds of network: made beforehand, and with the session.
    auto sandbox = make_sandbox(GENERATE(true, false) ? proxy_policy() : test_policy());
    constexpr const char* kFill = R"(
import socket
listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
# The kernel charges no cgroup for what is not accepted yet, so only little may wait there.
held = [socket.socket() for _ in range(200)]
for s in held:
    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 24)
    s.setblocking(False)
    s.connect_ex(listener.getsockname())
waiting, sent = 0, []
for s in held:
    try: sent.append(s.send(bytes(1 << 24))); waiting += 1
    except BlockingIOError: pass
print(waiting, max(sent) < 1 << 20)
big = socket.socket()
default = big.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
big.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)  # done, as far as it goes
print(default == big.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == 65536)
)";
    const bool bounded = std::none_of(
        sandbox.isolation().controls.begin(),
        sandbox.isolation().controls.end(),
        [](const sandbox::Control& control) {
            return control.mechanism.find("waiting connections not bounded") != std::string::npos;
        });
    CHECK((bounded || ::geteuid() != 0));
    const Ran filled = run_python(sandbox, kFill);
    CHECK(filled.out == (bounded ? "129 True\nTrue\n" : "200 True\nTrue\n"));
    // v1 counts them only if they have a limit of their own; the server's own directory has none.
    for (const std::string& cgroup : cgroups_of(::getpid())) {
        std::uint64_t limit = 0;
        const auto above = std::filesystem::path(cgroup).parent_path().filename().string();
        const bool session = above.rfind("cellkeep-", 0) == 0;
        if (session && std::ifstream(cgroup + "/memory.kmem.tcp.limit_in_bytes") >> limit) {
            CHECK(limit == test_policy().limits.memory_bytes / sandbox::kSocketMemoryShare);
        }
    }
    require_ok(sandbox.destroy(kPatience));
    // The control: outside a buffer may be larger than that, and more connections wait.
    const UniqueFd outside(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int wanted = 1 << 18U;
    REQUIRE(::setsockopt(outside.get(), SOL_SOCKET, SO_RCVBUF, &wanted, sizeof(wanted)) == 0);
    int got = 0;
    socklen_t size = sizeof(got);
    REQUIRE(::getsockopt(outside.get(), SOL_SOCKET, SO_RCVBUF, &got, &size) == 0);
    CHECK(got > 131'072);
}

TEST_CASE("a network is made before its session, and used once") {
    std::set<std::string> seen;
    std::vector<Sandbox> all;
    for (std::size_t i = 0; i < sandbox::kNetworksReadyMax + 2; ++i) {
        auto made = Sandbox::create(test_policy());  // by the launcher: a zygote has none
        REQUIRE(made.has_value());
        all.push_back(std::move(made).value());
        CHECK_THAT(
            mechanism_of(all.back(), "network_namespace"),
            Catch::StartsWith("network namespace with only loopback, made beforehand"));
        CHECK(seen.insert(run_inside(all.back(), {"/usr/bin/readlink", "/proc/self/ns/net"}).out)
                  .second);
    }
    CHECK(sandbox::network_pool().settle() == sandbox::kNetworksReadyMax);
}

TEST_CASE("nothing of a session owns its network") {
    if (::geteuid() != 0) {
        return;  // Pid 1's /proc directory is closed to everyone else.
    }
    auto sandbox = make_sandbox();
    const std::string network = "/proc/" + std::to_string(only_child()) + "/ns/net";
    const UniqueFd theirs(::open(network.c_str(), O_RDONLY | O_CLOEXEC));
    REQUIRE(theirs);
    const UniqueFd owner(::ioctl(theirs.get(), NS_GET_USERNS));
    REQUIRE(owner);
    // The one above the session's two: ours, or the zygote's.
    const std::string user = "/proc/" + std::to_string(only_child()) + "/ns/user";
    const UniqueFd inner(::open(user.c_str(), O_RDONLY | O_CLOEXEC));
    REQUIRE(inner);
    const UniqueFd outer(::ioctl(inner.get(), NS_GET_PARENT));
    REQUIRE(outer);
    const UniqueFd above(::ioctl(outer.get(), NS_GET_PARENT));
    REQUIRE(above);
    CHECK(identity_of(owner.get()) == identity_of(above.get()));
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("where no network is at hand a session makes its own, with the proxy's listener in it") {
    Policy policy = proxy_policy();
    const auto pid1 = launch_without_filter(policy);
    REQUIRE(pid1.listener);
    CHECK((::fcntl(pid1.listener.get(), F_GETFL) & O_NONBLOCK) != 0);
    CHECK(probe(pid1, {"connect_tcp", std::to_string(kProxyPort)}) == "ok");
    CHECK(accept_one(pid1.listener));
    CHECK(probe(pid1, {"connect_tcp", std::to_string(kProxyPort + 1)}) == "ECONNREFUSED");
    // No process inside has a capability over it, though it was made with the session.
    CHECK(
        probe(pid1, {"socket", std::to_string(AF_PACKET), std::to_string(SOCK_RAW), "0"}) ==
        "EPERM");
    require_ok(sandbox::kill_and_reap(pid1.pidfd, kPatience));
}

}  // namespace cellkeep::test
