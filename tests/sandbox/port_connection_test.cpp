// SPDX-License-Identifier: Apache-2.0
//
// Connections that the server asks pid 1 for: they lead to servers of the session's own network and
// nowhere else.
#include "sandbox/inside/port_connection.hpp"

#include "protocol/support/syscall.hpp"
#include "sandbox/server/loopback_connection.hpp"
#include "sandbox/shared/messages.hpp"
#include "tests/sandbox/fixture.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::test {

using sandbox::check_connection;
using sandbox::ConnectAnswer;
using sandbox::handle_connect;
using sandbox::kProxyPort;
using sandbox::Loopback;
using sandbox::ReceivedRequest;
using sandbox::RequestHeader;
using sandbox::RequestKind;
using sandbox::Sandbox;
using sandbox::take_connection;

namespace {

/// Prints its port, and greets each visitor. Its arguments are the address and the port to take.
constexpr const char* kGreet = R"(
import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
listener = socket.create_server((sys.argv[1], int(sys.argv[2])), family=family)
print(listener.getsockname()[1], flush=True)
while True:
    visitor = listener.accept()[0]
    visitor.sendall(b"hello from " + sys.argv[3].encode())
    visitor.close()
)";

std::string read_number(int fd) {
    std::string text;
    char c = 0;
    while (true) {
        REQUIRE(wait_readable(fd));
        if (::read(fd, &c, 1) != 1 || c == '\n') {
            return text;
        }
        text.push_back(c);
    }
}

/// A server inside; 0: it could not listen. port 0: any.
std::uint16_t start_greeter(
    Sandbox& sandbox, const std::string& address, std::uint16_t port, const std::string& name) {
    auto out = make_pipe();
    REQUIRE(out.has_value());
    sandbox::WorkerSpec spec;
    spec.argv = {"/usr/bin/python3", "-c", kGreet, address, std::to_string(port), name};
    spec.stdout_fd = std::move(out.value().write_end);
    spec.stderr_fd = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    REQUIRE(sandbox.start(std::move(spec)).has_value());
    const std::string number = read_number(out.value().read_end.get());
    return static_cast<std::uint16_t>(number.empty() ? 0 : std::stoi(number));
}

bool wait_writable(int fd) {
    pollfd watched{fd, POLLOUT, 0};
    const auto patience = std::chrono::duration_cast<std::chrono::milliseconds>(kPatience);
    return ::poll(&watched, 1, static_cast<int>(patience.count())) == 1;
}

/// As kernel-manager/session/network/port_connection.hpp does it.
Result<UniqueFd> connect(Sandbox& sandbox, std::uint16_t port, Loopback address = Loopback::kV4) {
    BOOST_OUTCOME_TRY(const UniqueFd answer, sandbox.begin_connection(port, address));
    std::optional<UniqueFd> socket;
    while (!socket) {
        REQUIRE(wait_readable(answer.get()));
        BOOST_OUTCOME_TRY(socket, take_connection(answer.get()));
    }
    REQUIRE(wait_writable(socket->get()));
    BOOST_OUTCOME_TRY(check_connection(socket->get()));
    return std::move(*socket);
}

ErrorCode refusal_of(Sandbox& sandbox, std::uint16_t port, Loopback address = Loopback::kV4) {
    const auto refused = connect(sandbox, port, address);
    REQUIRE(refused.has_error());
    return refused.error().code();
}

/// What a greeter says.
std::string greeting(Sandbox& sandbox, std::uint16_t port, Loopback address = Loopback::kV4) {
    auto socket = connect(sandbox, port, address);
    REQUIRE(socket.has_value());
    return read_all(socket.value().get());
}

struct Listener {
    UniqueFd fd;
    std::uint16_t port = 0;
};

/// A listener of this process, in the host's network.
Listener listen_outside() {
    Listener made{UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)), 0};
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* any = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(::bind(made.fd.get(), any, size) == 0);
    REQUIRE(::listen(made.fd.get(), 4) == 0);
    REQUIRE(::getsockname(made.fd.get(), any, &size) == 0);
    made.port = ntohs(address.sin_port);
    return made;
}

/// What pid 1 does with a request, done by this process in its own network. Nothing: it gives no
/// answer.
std::optional<ConnectAnswer> answer_to(
    std::uint32_t port, const std::vector<int>& fds, int server_end) {
    ReceivedRequest request;
    request.fd_count = fds.size();
    std::copy(fds.begin(), fds.end(), request.fds.begin());
    RequestHeader header;
    header.kind = RequestKind::kConnect;
    header.port = port;
    handle_connect(request, header);
    ConnectAnswer answer;
    const ssize_t got = ::recv(server_end, &answer, sizeof(answer), MSG_DONTWAIT);
    return got == sizeof(answer) ? std::optional(answer) : std::nullopt;
}

}  // namespace

TEST_CASE("a server of the session's own network is reached by its port, and nothing else") {
    auto sandbox = make_sandbox();
    auto neighbour = make_sandbox();
    const std::uint16_t port = start_greeter(sandbox, "127.0.0.1", 0, "here");
    REQUIRE(port != 0);
    CHECK(greeting(sandbox, port) == "hello from here");
    CHECK(greeting(sandbox, port) == "hello from here");
    // Neither a neighbour's nor the host's, and the sandbox's own to none.
    CHECK(refusal_of(neighbour, port) == ErrorCode::kNotFound);
    const Listener outside = listen_outside();
    CHECK(refusal_of(sandbox, outside.port) == ErrorCode::kNotFound);
    CHECK(::accept4(outside.fd.get(), nullptr, nullptr, SOCK_CLOEXEC) < 0);
    CHECK(refusal_of(sandbox, 0) == ErrorCode::kPermissionDenied);
    CHECK(refusal_of(sandbox, kProxyPort) == ErrorCode::kPermissionDenied);
    // The control: the same port of a neighbour is the neighbour's server.
    REQUIRE(start_greeter(neighbour, "127.0.0.1", port, "there") == port);
    CHECK(greeting(neighbour, port) == "hello from there");
    CHECK(greeting(sandbox, port) == "hello from here");
    require_ok(sandbox.destroy(kPatience));
    require_ok(neighbour.destroy(kPatience));
}

TEST_CASE("the way out of a session is not reached by its port, though it listens") {
    sandbox::Policy policy = test_policy();
    policy.network = sandbox::NetworkMode::kProxy;
    auto sandbox = make_sandbox(policy);
    const UniqueFd listener = sandbox.take_proxy_listener();
    REQUIRE(listener);
    CHECK(refusal_of(sandbox, kProxyPort) == ErrorCode::kPermissionDenied);
    CHECK(refusal_of(sandbox, kProxyPort, Loopback::kV6) == ErrorCode::kPermissionDenied);
    CHECK(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC) < 0);
    // The control: what runs inside reaches it, and a server beside it is reached.
    CHECK(probe_inside(sandbox, {"connect_tcp", std::to_string(kProxyPort)}) == "ok");
    const std::uint16_t port = start_greeter(sandbox, "127.0.0.1", 0, "here");
    CHECK(greeting(sandbox, port) == "hello from here");
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("a server that listens at ::1 alone is reached there") {
    auto sandbox = make_sandbox();
    const std::uint16_t port = start_greeter(sandbox, "::1", 0, "six");
    if (port == 0) {
        CHECK(refusal_of(sandbox, 8000, Loopback::kV6) == ErrorCode::kNotFound);
        return;  // The host has no IPv6.
    }
    CHECK(refusal_of(sandbox, port) == ErrorCode::kNotFound);
    CHECK(greeting(sandbox, port, Loopback::kV6) == "hello from six");
    const std::uint16_t four = start_greeter(sandbox, "127.0.0.1", 0, "four");
    CHECK(refusal_of(sandbox, four, Loopback::kV6) == ErrorCode::kNotFound);
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("the socket of a connection is the session's, does not block and is not inherited") {
    auto sandbox = make_sandbox();
    const std::uint16_t port = start_greeter(sandbox, "127.0.0.1", 0, "here");
    auto socket = connect(sandbox, port);
    REQUIRE(socket.has_value());
    const int fd = socket.value().get();
    CHECK((::fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    CHECK((::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    const UniqueFd outside(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    std::uint64_t theirs = 0;
    std::uint64_t ours = 0;
    socklen_t size = sizeof(theirs);
    REQUIRE(::getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &theirs, &size) == 0);
    REQUIRE(::getsockopt(outside.get(), SOL_SOCKET, SO_NETNS_COOKIE, &ours, &size) == 0);
    CHECK(theirs != ours);
    CHECK(read_all(fd) == "hello from here");
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("a sandbox that is frozen or has ended makes no connection") {
    auto sandbox = make_sandbox();
    const std::uint16_t port = start_greeter(sandbox, "127.0.0.1", 0, "here");
    if (sandbox.freeze(kPatience).has_value()) {
        CHECK(refusal_of(sandbox, port) == ErrorCode::kConflict);
        require_ok(sandbox.thaw());
    }
    CHECK(greeting(sandbox, port) == "hello from here");
    require_ok(sandbox.destroy(kPatience));
    CHECK(refusal_of(sandbox, port) == ErrorCode::kConflict);
}

TEST_CASE("pid 1 answers a request for a connection through one end of a socket pair alone") {
    const Listener listener = listen_outside();
    auto pair = make_socket_pair(SOCK_SEQPACKET);
    auto pipe = make_pipe();
    REQUIRE((pair.has_value() && pipe.has_value()));
    const int server_end = pair.value().first.get();
    const int inner_end = pair.value().second.get();
    const auto accepted = [&] {
        pollfd waiting{listener.fd.get(), POLLIN, 0};
        return ::poll(&waiting, 1, 0) == 1 &&
               UniqueFd(::accept4(listener.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
    };
    for (const std::vector<int>& wrong : std::vector<std::vector<int>>{
             {}, {inner_end, inner_end}, {pipe.value().write_end.get()}, {listener.fd.get()}}) {
        CHECK_FALSE(answer_to(listener.port, wrong, server_end).has_value());
        CHECK_FALSE(accepted());
    }
    for (const std::uint32_t port : {0U, std::uint32_t{kProxyPort}, 65'536U, 0xffff'ffffU}) {
        CAPTURE(port);
        const auto answer = answer_to(port, {inner_end}, server_end);
        REQUIRE(answer.has_value());
        CHECK(answer->error == EACCES);
        CHECK_FALSE(accepted());
    }
    const auto answer = answer_to(listener.port, {inner_end}, server_end);
    REQUIRE(answer.has_value());
    CHECK(answer->error == 0);
    CHECK(accepted());
}

TEST_CASE("what is no answer to a request for a connection is an error") {
    const auto taken = [](std::string_view bytes) {
        auto pair = make_socket_pair(SOCK_SEQPACKET);
        REQUIRE(pair.has_value());
        require_ok(set_nonblocking(pair.value().first.get()));
        if (!bytes.empty()) {
            require_ok(write_all(pair.value().second.get(), bytes));
        }
        pair.value().second.reset();
        return take_connection(pair.value().first.get());
    };
    const auto bytes_of = [](std::int32_t error) {
        std::string bytes(sizeof(ConnectAnswer), '\0');
        std::memcpy(bytes.data(), &error, sizeof(error));
        return bytes;
    };
    CHECK(taken("").error().code() == ErrorCode::kUnavailable);
    CHECK(taken("x").error().code() == ErrorCode::kUnavailable);
    CHECK(taken(bytes_of(0)).error().code() == ErrorCode::kProtocol);  // it brings no socket
    CHECK(taken(bytes_of(0) + "x").has_error());
    CHECK(taken(bytes_of(EACCES)).error().code() == ErrorCode::kPermissionDenied);
    CHECK(taken(bytes_of(ECONNREFUSED)).error().code() == ErrorCode::kNotFound);
    CHECK(taken(bytes_of(ETIMEDOUT)).error().code() == ErrorCode::kTimeout);
    CHECK(taken(bytes_of(EMFILE)).error().code() == ErrorCode::kUnavailable);
    // The control: as long as pid 1 has said nothing, there is nothing to take.
    auto pair = make_socket_pair(SOCK_SEQPACKET);
    REQUIRE(pair.has_value());
    require_ok(set_nonblocking(pair.value().first.get()));
    const auto nothing = take_connection(pair.value().first.get());
    REQUIRE(nothing.has_value());
    CHECK_FALSE(nothing.value().has_value());
}

}  // namespace cellkeep::test
