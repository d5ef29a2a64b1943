// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/checkpoints/branch_gate.hpp"

#include "sandbox/shared/sleep_messages.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

namespace cellkeep::session {

namespace {

using Descriptor = boost::asio::posix::stream_descriptor;

Result<pid_t> read_report(int gate) {
    // One byte more than it may have, and no room for descriptors: those are closed.
    struct {
        sandbox::LeaveReport report;
        char more;
    } buffer{};
    const ssize_t got = ::recv(gate, &buffer, sizeof(buffer.report) + 1, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return Error(ErrorCode::kTimeout, "branch: the checkpoint's process does not leave");
    }
    if (got != sizeof(buffer.report)) {
        return Error(ErrorCode::kProtocol, "branch: the checkpoint's process did not leave");
    }
    if (buffer.report.error != 0 || buffer.report.forked < 2) {
        return Error::from_errno(
            buffer.report.error, "branch: step " + std::to_string(buffer.report.step));
    }
    return static_cast<pid_t>(buffer.report.forked);
}

}  // namespace

boost::asio::awaitable<Result<pid_t>> pass_gate(
    boost::asio::io_context& io, UniqueFd gate, std::chrono::milliseconds patience) {
    const auto descriptor = std::make_shared<Descriptor>(io);
    boost::system::error_code error;
    descriptor->assign(gate.get(), error);
    if (error) {
        co_return Error(ErrorCode::kSystem, "branch: watch the gate: " + error.message());
    }
    (void)gate.release();
    const char word = 'g';
    if (::send(descriptor->native_handle(), &word, 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1) {
        co_return Error(ErrorCode::kProtocol, "branch: the checkpoint's process is gone");
    }
    boost::asio::steady_timer timer(io, patience);
    timer.async_wait([descriptor](const boost::system::error_code& cancelled) {
        if (!cancelled) {
            descriptor->cancel();
        }
    });
    boost::system::error_code ignored;  // readable or cancelled: the read tells
    co_await descriptor->async_wait(
        Descriptor::wait_read, boost::asio::redirect_error(boost::asio::use_awaitable, ignored));
    timer.cancel();
    co_return read_report(descriptor->native_handle());
}

}  // namespace cellkeep::session
