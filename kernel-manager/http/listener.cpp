// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/listener.hpp"

#include "kernel-manager/http/connection.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <fcntl.h>

#include <charconv>
#include <utility>
#include <vector>

namespace cellkeep::http {

namespace asio = boost::asio;
using asio::ip::tcp;
using Clock = std::chrono::steady_clock;

namespace {

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
/// Connections past the maximum that are still told so; the ones after them are closed at once.
constexpr std::size_t kRefusedAtOnceMax = 64;
/// Pause after accept(2) failed for lack of descriptors or memory.
constexpr std::chrono::milliseconds kAcceptBackoff{100};
/// How often a stopping listener looks whether its last connection is gone.
constexpr std::chrono::milliseconds kStopPeriod{20};

void close_on_exec(int fd) {
    // Ignored: cannot fail on an open descriptor (fcntl(2)).
    (void)::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

}  // namespace

Result<ListenAddress> parse_listen_address(std::string_view text) {
    const auto refuse = [text] {
        return Error(
            ErrorCode::kInvalidArgument,
            "\"" + std::string(text) + "\" is not HOST:PORT",
            "HOST is an IP address or localhost, for example 127.0.0.1:8888 or [::1]:8888.");
    };
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) {
        return refuse();
    }
    std::string_view host = text.substr(0, colon);
    const std::string_view port_text = text.substr(colon + 1);
    const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
    if (bracketed) {
        host = host.substr(1, host.size() - 2);
    }
    ListenAddress address;
    const char* end = port_text.data() + port_text.size();
    const auto [stop, failed] = std::from_chars(port_text.data(), end, address.port);
    if (port_text.empty() || failed != std::errc() || stop != end) {
        return refuse();
    }
    address.host = host == "localhost" ? std::string("127.0.0.1") : std::string(host);
    boost::system::error_code error;
    const auto ip = asio::ip::make_address(address.host, error);
    if (error || ip.is_v6() != bracketed) {
        return refuse();
    }
    address.loopback = ip.is_loopback();
    return address;
}

struct Listener::State {
    State(asio::io_context& context, const Application& app)
        : io(context), application(app), acceptor(context), sweeper(context) {}
    asio::io_context& io;
    const Application& application;
    tcp::acceptor acceptor;
    asio::steady_timer sweeper;
    std::shared_ptr<ConnectionRegistry> registry;
    Clock::time_point abort_at = Clock::time_point::max();
    std::function<void()> stopped;
};

Listener::Listener(std::unique_ptr<State> state) : state_(std::move(state)) {}
Listener::~Listener() = default;

Result<std::unique_ptr<Listener>> Listener::create(
    asio::io_context& io,
    const ListenAddress& address,
    const Application& application,
    ConnectionLimits limits,
    AccessLog log) {
    auto state = std::make_unique<State>(io, application);
    state->registry = std::make_shared<ConnectionRegistry>(limits, std::move(log));
    boost::system::error_code error;
    const tcp::endpoint endpoint(asio::ip::make_address(address.host, error), address.port);
    auto& acceptor = state->acceptor;
    const auto step = [&error](auto action) {
        if (!error) {
            action();
        }
    };
    step([&] { (void)acceptor.open(endpoint.protocol(), error); });
    step([&] { (void)acceptor.set_option(tcp::acceptor::reuse_address(true), error); });
    step([&] { (void)acceptor.bind(endpoint, error); });
    step([&] { (void)acceptor.listen(asio::socket_base::max_listen_connections, error); });
    if (error) {
        const std::string what =
            "listen(" + address.host + ":" + std::to_string(address.port) + ")";
        const bool taken = error == boost::system::errc::address_in_use;
        return Error(
            taken ? ErrorCode::kConflict : ErrorCode::kUnavailable, what + ": " + error.message());
    }
    close_on_exec(acceptor.native_handle());
    return std::unique_ptr<Listener>(new Listener(std::move(state)));
}

void Listener::start() {
    asio::co_spawn(
        state_->io, [this] { return accept_loop(); }, asio::detached);
    asio::co_spawn(
        state_->io, [this] { return sweep_loop(); }, asio::detached);
}

asio::awaitable<void> Listener::accept_loop() {
    asio::steady_timer backoff(state_->io);
    while (state_->acceptor.is_open()) {
        auto [error, socket] = co_await state_->acceptor.async_accept(kAwait);
        if (error == asio::error::operation_aborted) {
            continue;  // stop() closed the acceptor
        }
        if (error) {
            backoff.expires_after(kAcceptBackoff);
            (void)co_await backoff.async_wait(
                kAwait);  // Ignored: a cancelled pause is a short pause.
            continue;
        }
        close_on_exec(socket.native_handle());
        const std::size_t open = state_->registry->open().size();
        const std::size_t maximum = state_->registry->limits().connections_max;
        if (open >= maximum + kRefusedAtOnceMax) {
            continue;  // the socket closes here
        }
        boost::system::error_code ignored;  // Ignored: only names the peer in the log.
        const auto peer = socket.remote_endpoint(ignored);
        auto stream = std::make_shared<ByteStream>(std::move(socket), peer.address().to_string());
        std::make_shared<Connection>(
            std::move(stream),
            state_->application,
            state_->registry,
            open >= maximum ? Admittance::kServerFull : Admittance::kServe)
            ->start();
    }
}

asio::awaitable<void> Listener::sweep_loop() {
    const auto registry = state_->registry;
    while (!registry->stopping() || !registry->open().empty()) {
        state_->sweeper.expires_after(
            registry->stopping() ? kStopPeriod : registry->limits().sweep_period);
        (void)co_await state_->sweeper.async_wait(kAwait);  // Ignored: stop() ends the pause early.
        const auto now = Clock::now();
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

void Listener::stop(std::chrono::milliseconds patience, std::function<void()> stopped) {
    state_->stopped = std::move(stopped);
    boost::system::error_code ignored;  // Ignored: closed is what it shall be.
    (void)state_->acceptor.close(ignored);
    state_->registry->set_stopping();
    state_->abort_at = Clock::now() + patience;
    for (Connection* connection : state_->registry->open()) {
        connection->finish();
    }
    state_->sweeper.cancel();
}

std::uint16_t Listener::port() const {
    boost::system::error_code ignored;  // Ignored: a closed listener has port 0.
    return state_->acceptor.local_endpoint(ignored).port();
}

std::string Listener::url() const {
    boost::system::error_code error;
    const auto endpoint = state_->acceptor.local_endpoint(error);
    const auto address = endpoint.address();
    std::string host = address.to_string();
    if (address.is_unspecified()) {
        host = address.is_v6() ? "::1" : "127.0.0.1";
    }
    return "http://" + (address.is_v6() ? "[" + host + "]" : host) + ":" +
           std::to_string(endpoint.port());
}

}  // namespace cellkeep::http
