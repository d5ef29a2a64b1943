// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/listener.hpp"

#include "kernel-manager/http/connection/connection.hpp"
#include "protocol/support/await.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

namespace cellkeep::http {

namespace asio = boost::asio;
using asio::ip::tcp;
using Endpoint = asio::generic::stream_protocol::endpoint;
using Clock = std::chrono::steady_clock;

namespace {

/// Connections past the maximum that get an answer which says so. Those after them are closed at
/// once.
constexpr std::size_t kRefusedAtOnceMax = 64;
/// Pause after accept(2) failed for lack of descriptors or memory.
constexpr std::chrono::milliseconds kAcceptBackoff{100};
/// How often a stopping listener looks whether its last connection is gone.
constexpr std::chrono::milliseconds kStopPeriod{20};

/// Who connected, as far as the kernel says.
ByteStream::Peer describe_peer(ByteStream::Socket& socket) {
    boost::system::error_code ignored;  // Ignored: the peer is gone and needs no name.
    const Endpoint endpoint = socket.remote_endpoint(ignored);
    if (endpoint.protocol().family() == AF_UNIX) {
        struct ucred credentials {};
        socklen_t bytes = sizeof credentials;
        const bool known =
            ::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) ==
            0;
        if (!known) {
            return {"unix", false};
        }
        return {"unix:uid=" + std::to_string(credentials.uid), credentials.uid == ::geteuid()};
    }
    tcp::endpoint address;
    if (endpoint.size() <= address.capacity() && endpoint.size() > 0) {
        std::memcpy(address.data(), endpoint.data(), endpoint.size());
        address.resize(endpoint.size());
    }
    return {address.address().to_string(), false};
}

void close_on_exec(int fd) {
    // Ignored: cannot fail on an open descriptor (fcntl(2)).
    (void)::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

}  // namespace

struct Listener::State {
    State(asio::io_context& context, const Application& app)
        : io(context), application(app), acceptor(context), sweeper(context), gate(context) {}
    /// Binds and listens.
    Status open();
    /// Takes a socket that listens.
    Status take(InheritedSocket inherited);
    /// before: of a connection that another program has begun.
    void begin(ByteStream::Socket socket, AwaitingConnection before = {});
    void begin_passed(AwaitingConnection connection);
    asio::io_context& io;
    const Application& application;
    ListenAddress address;
    asio::basic_socket_acceptor<asio::generic::stream_protocol> acceptor;
    std::optional<UnixSocketFile> file;
    std::vector<AwaitingConnection> passed;  // connections that begin with this listener
    std::shared_ptr<TlsContext> tls;
    asio::steady_timer sweeper;
    std::shared_ptr<ConnectionRegistry> registry;
    bool paused = false;
    asio::steady_timer gate;  // never goes off: cancelled when the pause is over
    Clock::time_point abort_at = Clock::time_point::max();
    std::function<void()> stopped;
};

Listener::Listener(std::unique_ptr<State> state) : state_(std::move(state)) {}
Listener::~Listener() = default;

Status Listener::State::open() {
    const bool is_unix = !address.path.empty();
    if (is_unix) {
        BOOST_OUTCOME_TRY(UnixSocketFile::make_room(address.path));
    }
    boost::system::error_code error;
    const Endpoint endpoint =
        is_unix
            ? Endpoint(asio::local::stream_protocol::endpoint(address.path))
            : Endpoint(tcp::endpoint(asio::ip::make_address(address.host, error), address.port));
    const auto step = [&error](auto action) {
        if (!error) {
            action();
        }
    };
    step([&] { (void)acceptor.open(endpoint.protocol(), error); });
    step([&] {
        if (!is_unix) {
            (void)acceptor.set_option(tcp::acceptor::reuse_address(true), error);
        }
    });
    step([&] { (void)acceptor.bind(endpoint, error); });
    if (is_unix && !error) {
        BOOST_OUTCOME_TRY(file, UnixSocketFile::adopt(address.path));
    }
    step([&] { (void)acceptor.listen(asio::socket_base::max_listen_connections, error); });
    if (error) {
        const std::string where =
            is_unix ? address.path : address.host + ":" + std::to_string(address.port);
        const bool taken = error == boost::system::errc::address_in_use;
        return Error(
            taken ? ErrorCode::kConflict : ErrorCode::kUnavailable,
            "listen(" + where + "): " + error.message());
    }
    close_on_exec(acceptor.native_handle());
    return ok();
}

Status Listener::State::take(InheritedSocket inherited) {
    BOOST_OUTCOME_TRY(const ListenAddress found, address_of(inherited.fd));
    const int family = !found.path.empty()                          ? AF_UNIX
                       : asio::ip::make_address(found.host).is_v6() ? AF_INET6
                                                                    : AF_INET;
    boost::system::error_code error;
    (void)acceptor.assign(asio::generic::stream_protocol(family, 0), inherited.fd.get(), error);
    if (error) {
        return Error(ErrorCode::kSystem, "inherited socket: " + error.message());
    }
    close_on_exec(inherited.fd.release());
    file = std::move(inherited.file);
    if (!tls) {
        // They speak in the clear.
        passed = std::move(inherited.awaiting);
        for (UniqueFd& connection : inherited.connections) {
            passed.push_back({std::move(connection), {}, {}});
        }
    }
    return ok();
}

void Listener::State::begin(ByteStream::Socket socket, AwaitingConnection before) {
    const std::size_t open = registry->open().size();
    const std::size_t maximum = registry->limits().connections_max;
    if (open >= maximum + kRefusedAtOnceMax) {
        return;  // the socket closes here
    }
    ByteStream::Peer peer = describe_peer(socket);
    auto stream = std::make_shared<ByteStream>(std::move(socket), std::move(peer), tls);
    std::make_shared<Connection>(
        std::move(stream),
        application,
        registry,
        open >= maximum ? ConnectionAdmission::kServerFull : ConnectionAdmission::kServe,
        std::move(before))
        ->start();
    if (open == 0) {
        sweeper.cancel();  // it waits for the first connection
    }
}

void Listener::State::begin_passed(AwaitingConnection connection) {
    const asio::generic::stream_protocol protocol(acceptor.local_endpoint().protocol());
    ByteStream::Socket socket(io);
    boost::system::error_code error;
    (void)socket.assign(protocol, connection.fd.get(), error);
    if (!error) {
        (void)connection.fd.release();
        begin(std::move(socket), std::move(connection));
    }
}

Result<std::unique_ptr<Listener>> Listener::create(
    asio::io_context& io,
    const ListenAddress& address,
    const Application& application,
    ConnectionLimits limits,
    AccessLog log,
    std::shared_ptr<TlsContext> tls,
    InheritedSocket inherited) {
    auto state = std::make_unique<State>(io, application);
    state->address = address;
    state->tls = address.path.empty() ? std::move(tls) : nullptr;
    state->registry = std::make_shared<ConnectionRegistry>(limits, std::move(log));
    BOOST_OUTCOME_TRY(inherited.fd ? state->take(std::move(inherited)) : state->open());
    return std::unique_ptr<Listener>(new Listener(std::move(state)));
}

void Listener::start() {
    for (AwaitingConnection& connection : std::exchange(state_->passed, {})) {
        state_->begin_passed(std::move(connection));
    }
    asio::co_spawn(
        state_->io, [this] { return accept_loop(); }, asio::detached);
    asio::co_spawn(
        state_->io, [this] { return sweep_loop(); }, asio::detached);
}

asio::awaitable<void> Listener::accept_loop() {
    asio::steady_timer backoff(state_->io);
    while (state_->acceptor.is_open()) {
        if (state_->paused) {
            state_->gate.expires_at(Clock::time_point::max());
            (void)co_await state_->gate.async_wait(kAwait);  // Ignored: that is how it ends.
            continue;
        }
        auto [error, socket] = co_await state_->acceptor.async_accept(kAwait);
        if (error == asio::error::operation_aborted) {
            continue;  // stop() closed the acceptor, or pause()
        }
        if (error) {
            backoff.expires_after(kAcceptBackoff);
            (void)co_await backoff.async_wait(
                kAwait);  // Ignored: a cancelled pause is a short pause.
            continue;
        }
        close_on_exec(socket.native_handle());
        state_->begin(std::move(socket));
    }
}

asio::awaitable<void> Listener::sweep_loop() {
    const auto registry = state_->registry;
    while (!registry->stopping() || !registry->open().empty()) {
        if (registry->open().empty()) {
            state_->sweeper.expires_at(Clock::time_point::max());  // a server at rest does not tick
        } else {
            state_->sweeper.expires_after(
                registry->stopping() ? kStopPeriod : registry->limits().sweep_period);
        }
        (void)co_await state_->sweeper.async_wait(kAwait);  // Ignored: a pause may end early.
        const auto now = Clock::now();
        if (now >= state_->abort_at) {
            registry->arrivals().close();
        }
        for (Connection* connection : registry->open()) {
            if (now >= state_->abort_at) {
                connection->abort();
            } else {
                connection->expire_if_due(now);
            }
        }
    }
    if (state_->stopped) {
        state_->stopped();
    }
}

void Listener::pause(
    std::chrono::milliseconds patience, InPause waiting, std::function<void(bool)> done) {
    state_->paused = true;
    state_->registry->begin_pause(waiting);
    boost::system::error_code ignored;  // Ignored: then one more is accepted, and told to finish.
    (void)state_->acceptor.cancel(ignored);
    drain_for(Until::kPaused, patience, std::move(done));
}

void Listener::wait_until_empty(
    std::chrono::milliseconds patience, std::function<void(bool)> done) {
    drain_for(Until::kEmpty, patience, std::move(done));
}

void Listener::drain_for(
    Until until, std::chrono::milliseconds patience, std::function<void(bool)> done) {
    const Clock::time_point deadline = Clock::now() + patience;
    asio::co_spawn(
        state_->io,
        [this, until, deadline, done = std::move(done)]() mutable {
            return drain(until, deadline, std::move(done));
        },
        asio::detached);
}

std::vector<std::string> Listener::stuck() const {
    return state_->registry->stuck();
}

bool Listener::is_drained(Until until) const {
    const auto& open = state_->registry->open();
    return stuck().empty() &&
           std::all_of(open.begin(), open.end(), [until](const Connection* connection) {
               return connection->is_resting() ||
                      (until == Until::kPaused && connection->outlasts_pause());
           });
}

asio::awaitable<void> Listener::drain(
    Until until, Clock::time_point deadline, std::function<void(bool)> done) {
    asio::steady_timer timer(state_->io);
    const auto registry = state_->registry;
    for (auto now = Clock::now(); !is_drained(until) && now < deadline; now = Clock::now()) {
        for (Connection* connection : registry->open()) {
            connection->come_to_rest(now);
        }
        timer.expires_after(kStopPeriod);
        (void)co_await timer.async_wait(kAwait);  // Ignored: nobody cancels it.
    }
    done(is_drained(until));
}

void Listener::resume() {
    state_->paused = false;
    state_->registry->end_pause();
    for (Connection* connection : state_->registry->open()) {
        connection->go_on();
    }
    state_->gate.cancel();
}

Result<UniqueFd> Listener::copy_socket() const {
    UniqueFd copy(::fcntl(state_->acceptor.native_handle(), F_DUPFD_CLOEXEC, 3));
    if (!copy) {
        return Error::from_errno(errno, "fcntl(F_DUPFD_CLOEXEC)");
    }
    return copy;
}

InheritedSocket Listener::pass_on(UniqueFd copy, std::size_t connections_max) {
    InheritedSocket passed;
    passed.fd = std::move(copy);
    passed.file = std::exchange(state_->file, std::nullopt);
    for (Connection* connection : state_->registry->resting()) {
        const bool awaits = connection->is_awaiting();
        if (!awaits && passed.connections.size() >= connections_max) {
            continue;
        }
        AwaitingConnection one = connection->pass_on();
        if (one.fd && awaits) {
            passed.awaiting.push_back(std::move(one));
        } else if (one.fd) {
            passed.connections.push_back(std::move(one.fd));
        }
    }
    return passed;
}

void Listener::stop(std::chrono::milliseconds patience, std::function<void()> stopped) {
    state_->stopped = std::move(stopped);
    boost::system::error_code ignored;  // Ignored: the socket is closed in any case.
    (void)state_->acceptor.close(ignored);
    state_->gate.cancel();
    state_->file.reset();
    state_->registry->set_stopping();
    state_->abort_at = Clock::now() + patience;
    for (Connection* connection : state_->registry->open()) {
        connection->finish();
    }
    state_->sweeper.cancel();
}

std::uint16_t Listener::port() const {
    boost::system::error_code ignored;  // Ignored: a closed listener has port 0.
    const Endpoint endpoint = state_->acceptor.local_endpoint(ignored);
    if (endpoint.protocol().family() == AF_INET) {
        return ntohs(reinterpret_cast<const sockaddr_in*>(endpoint.data())->sin_port);
    }
    if (endpoint.protocol().family() == AF_INET6) {
        return ntohs(reinterpret_cast<const sockaddr_in6*>(endpoint.data())->sin6_port);
    }
    return 0;
}

std::string Listener::url() const {
    if (!state_->address.path.empty()) {
        return "unix:" + state_->address.path;
    }
    boost::system::error_code error;
    const auto address = asio::ip::make_address(state_->address.host, error);
    std::string host = address.to_string();
    if (address.is_unspecified()) {
        host = address.is_v6() ? "::1" : "127.0.0.1";
    }
    const std::string scheme = state_->tls ? "https://" : "http://";
    return scheme + (address.is_v6() ? "[" + host + "]" : host) + ":" + std::to_string(port());
}

}  // namespace cellkeep::http
