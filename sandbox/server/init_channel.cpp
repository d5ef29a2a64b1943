// SPDX-License-Identifier: Apache-2.0
#include "sandbox/server/init_channel.hpp"

#include "protocol/support/syscall.hpp"
#include "sandbox/server/launcher_process.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

namespace cellkeep::sandbox {

Result<std::uint32_t> InitChannel::send(
    RequestHeader header, const std::string& text, std::span<const int> fds) {
    header.sequence = ++last_sequence_;
    header.text_bytes = static_cast<std::uint32_t>(text.size());
    std::string request(sizeof(header), '\0');
    std::memcpy(request.data(), &header, sizeof(header));
    request += text;
    const auto sent = send_with_fds(
        control_.get(), std::as_bytes(std::span(request.data(), request.size())), fds);
    if (sent.has_error()) {
        return sent.error().errno_value() == EAGAIN
                   ? Error(ErrorCode::kUnavailable, "the sandbox's pid 1 does not take requests")
                   : sent.error();
    }
    return header.sequence;
}

Status InitChannel::signal(std::uint32_t worker, int number) {
    if (number < 1 || number > kSignalMax) {
        return Error(ErrorCode::kInvalidArgument, "signal: there is no such signal");
    }
    RequestHeader header;
    header.kind = RequestKind::kSignal;
    header.worker_id = worker;
    header.signal = number;
    BOOST_OUTCOME_TRY(with_context(send(header, "", {}), "signal"));
    return ok();
}

Status InitChannel::let_pass(pid_t inside, std::uint32_t calls) {
    RequestHeader header;
    header.kind = RequestKind::kLetPass;
    header.forked = inside;
    header.passes = calls;
    BOOST_OUTCOME_TRY(with_context(send(header, "", {}), "branch"));
    return ok();
}

Result<std::optional<InitChannel::Reply>> InitChannel::take() {
    Reply reply;
    auto received =
        receive_with_fds(control_.get(), std::as_writable_bytes(std::span(&reply.message, 1)));
    if (received.has_error()) {
        if (received.error().code() == ErrorCode::kUnavailable) {
            return std::optional<Reply>();
        }
        return std::move(received).error();
    }
    if (received.value().bytes != sizeof(reply.message)) {
        return Error(ErrorCode::kUnavailable, "the sandbox is dead");
    }
    reply.fds = std::move(received.value().fds);
    return std::optional(std::move(reply));
}

Result<InitChannel::Reply> InitChannel::wait(
    std::uint32_t sequence, std::chrono::milliseconds patience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (true) {
        if (const auto there = wait_until_readable(control_.get(), deadline); there.has_error()) {
            return there.error().code() == ErrorCode::kTimeout
                       ? Error(ErrorCode::kTimeout, "the sandbox's pid 1 did not answer in time")
                       : there.error();
        }
        BOOST_OUTCOME_TRY(auto reply, take());
        if (reply.has_value() && reply->message.sequence == sequence) {
            return std::move(*reply);
        }
    }
}

}  // namespace cellkeep::sandbox
