// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/process/kernel_handshake.hpp"

#include "kernel-manager/output/reply_facts.hpp"
#include "protocol/internal_request.hpp"
#include "protocol/limits.hpp"

#include <utility>

namespace cellkeep::session {

using protocol::Channel;
using protocol::Message;

void KernelHandshake::begin() {
    info_.reset();
    ready_ = std::make_shared<Completion<Status>>(io_);
}

void KernelHandshake::go_on(nlohmann::json info) {
    begin();
    info_ = std::move(info);
    settle(ok());
}

Message KernelHandshake::ask(const ServerMessages& messages) {
    Message question =
        messages.request(Channel::kShell, "kernel_info_request", nlohmann::json::object());
    info_request_id_ = question.header().msg_id;
    return question;
}

boost::asio::awaitable<Status> KernelHandshake::wait_ready() const {
    return Completion<Status>::wait(ready_);
}

boost::asio::awaitable<Status> KernelHandshake::wait_restarted() {
    if (!restarted_) {
        restarted_ = std::make_shared<Completion<Status>>(io_);
    }
    return Completion<Status>::wait(restarted_);
}

void KernelHandshake::fail_process(const Error& why) {
    if (ready_) {
        ready_->set(why);
    }
}

void KernelHandshake::settle(const Status& status) {
    if (ready_) {
        ready_->set(status);
    }
    if (const auto restarted = std::exchange(restarted_, nullptr)) {
        restarted->set(status);
    }
}

Message KernelHandshake::ask_adoption(
    const ServerMessages& messages, const nlohmann::json& content) {
    Message request = messages.request(Channel::kControl, protocol::kAdoptRequest, content);
    adopt_request_id_ = request.header().msg_id;
    adopted_ = std::make_shared<Completion<Status>>(io_);
    return request;
}

boost::asio::awaitable<Status> KernelHandshake::wait_adopted(std::chrono::milliseconds timeout) {
    const auto adopted = adopted_;
    adoption_timer_.expires_after(timeout);
    adoption_timer_.async_wait([adopted](const boost::system::error_code& error) {
        if (!error) {
            adopted->set(Error(ErrorCode::kTimeout, "hand out: the spare does not answer"));
        }
    });
    Status done = co_await Completion<Status>::wait(adopted);
    adopted_.reset();
    adoption_timer_.cancel();
    co_return done;
}

void KernelHandshake::fail_adoption(const std::string& why) {
    if (adopted_) {
        adopted_->set(Error(ErrorCode::kUnavailable, why));
    }
}

KernelHandshake::Taken KernelHandshake::take(const Message& message) {
    const std::string& parent = message.parent().msg_id;
    switch (message.channel()) {
        case Channel::kIopub:
            // The status of the first question is no news.
            return message.header().msg_type == "status" && parent == info_request_id_
                       ? Taken::kDone
                       : Taken::kNot;
        case Channel::kShell:
            return parent == info_request_id_ && !info_.has_value() ? take_info(message)
                                                                    : Taken::kNot;
        case Channel::kControl:
            if (!adopted_ || parent != adopt_request_id_) {
                return Taken::kNot;
            }
            adopted_->set(
                says(message, protocol::Member::kStatus, "ok")
                    ? Status(ok())
                    : Status(Error(ErrorCode::kSystem, "the kernel could not be handed out")));
            return Taken::kDone;
        case Channel::kStdin:
            return Taken::kNot;
    }
    return Taken::kNot;
}

KernelHandshake::Taken KernelHandshake::take_info(const Message& reply) {
    // Kept and repeated to clients, so the guest may not choose its size.
    if (reply.content_json().size() > limits::kKernelInfoBytesMax) {
        return Taken::kBroken;
    }
    auto content = reply.parse_content();
    if (content.has_error()) {
        return Taken::kBroken;
    }
    info_ = std::move(content).value();
    return Taken::kReady;
}

}  // namespace cellkeep::session
