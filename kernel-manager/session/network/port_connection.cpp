// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/network/port_connection.hpp"

#include "protocol/support/await.hpp"
#include "sandbox/server/loopback_connection.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <memory>
#include <optional>
#include <utility>

namespace cellkeep::session {

namespace asio = boost::asio;

namespace {

using Waited = asio::posix::stream_descriptor;

/// A descriptor that is waited for until the deadline. It stays its owner's.
struct DescriptorWait {
    explicit DescriptorWait(const asio::any_io_executor& executor)
        : descriptor(executor), timer(executor) {}
    DescriptorWait(const DescriptorWait&) = delete;
    DescriptorWait& operator=(const DescriptorWait&) = delete;
    ~DescriptorWait() {
        if (descriptor.is_open()) {
            (void)descriptor.release();
        }
    }
    Waited descriptor;
    asio::steady_timer timer;
    bool late = false;
};

asio::awaitable<Status> await_descriptor(
    int fd, Waited::wait_type what, std::chrono::steady_clock::time_point deadline) {
    const auto wait = std::make_shared<DescriptorWait>(co_await asio::this_coro::executor);
    boost::system::error_code error;
    wait->descriptor.assign(fd, error);
    if (error) {
        co_return Error(ErrorCode::kSystem, "connect: " + error.message());
    }
    wait->timer.expires_at(deadline);
    wait->timer.async_wait(
        [weak = std::weak_ptr(wait)](const boost::system::error_code& cancelled) {
            const auto waiting = weak.lock();
            if (!cancelled && waiting != nullptr && waiting->descriptor.is_open()) {
                waiting->late = true;
                boost::system::error_code ignored;  // What waits ends with an error either way.
                waiting->descriptor.cancel(ignored);
            }
        });
    const auto [failed] = co_await wait->descriptor.async_wait(what, kAwait);
    wait->timer.cancel();
    if (wait->late) {
        co_return Error(ErrorCode::kTimeout, "connect: the connection is not accepted");
    }
    if (failed) {
        co_return Error(ErrorCode::kSystem, "connect: " + failed.message());
    }
    co_return ok();
}

}  // namespace

asio::awaitable<Result<UniqueFd>> finish_port_connection(
    UniqueFd answer, std::chrono::milliseconds patience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    std::optional<UniqueFd> socket;
    while (!socket) {
        Status answered = co_await await_descriptor(answer.get(), Waited::wait_read, deadline);
        BOOST_OUTCOME_CO_TRY(std::move(answered));
        BOOST_OUTCOME_CO_TRY(socket, sandbox::take_connection(answer.get()));
    }
    Status writable = co_await await_descriptor(socket->get(), Waited::wait_write, deadline);
    BOOST_OUTCOME_CO_TRY(std::move(writable));
    BOOST_OUTCOME_CO_TRY(sandbox::check_connection(socket->get()));
    co_return std::move(*socket);
}

PortConnector::PortConnector(sandbox::Sandbox& sandbox, Hooks hooks)
    : sandbox_(sandbox), hooks_(std::move(hooks)), awaited_(hooks_.answered) {}

asio::awaitable<Result<UniqueFd>> PortConnector::connect(
    std::shared_ptr<const void> /*owner*/, std::uint16_t port) {
    auto socket = co_await connect_to(port, sandbox::Loopback::kV4);
    if (socket.has_error() && socket.error().code() == ErrorCode::kNotFound) {
        socket = co_await connect_to(port, sandbox::Loopback::kV6);
    }
    co_return socket;
}

asio::awaitable<Result<UniqueFd>> PortConnector::connect_to(
    std::uint16_t port, sandbox::Loopback address) {
    if (hooks_.has_ended()) {
        co_return Error(ErrorCode::kConflict, "connect: the session has ended");
    }
    hooks_.use();
    BOOST_OUTCOME_CO_TRY(UniqueFd answer, sandbox_.begin_connection(port, address));
    auto socket = co_await finish_port_connection(std::move(answer), kPortConnectPatience);
    if (hooks_.has_ended()) {
        co_return Error(ErrorCode::kConflict, "connect: the session has ended");
    }
    co_return socket;
}

}  // namespace cellkeep::session
