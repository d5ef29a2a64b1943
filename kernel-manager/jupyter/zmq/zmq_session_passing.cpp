// SPDX-License-Identifier: Apache-2.0
//
// ZmqSession on its way from one program in the server's process to another.
#include "kernel-manager/jupyter/zmq/zmq_session.hpp"

#include <utility>

namespace cellkeep::jupyter {

using protocol::Channel;

void ZmqSession::hold() {
    holding_ = true;
}

void ZmqSession::resume() {
    holding_ = false;
    release();
}

/// On control comes what may end a request that the server waits for, on stdin what one asks for.
/// Until its subscribers are back, none begins at all.
bool ZmqSession::must_hold(const Identities& identities, Channel channel) const {
    if (collecting_) {
        return true;
    }
    if (return_ != nullptr && return_->is_awaited()) {
        return channel != Channel::kStdin;
    }
    return holding_ && channel == Channel::kShell && is_named(identities);
}

void ZmqSession::hold_request(WaitingRequest request) {
    held_.add(std::move(request));
    if (!collecting_ && !held_.may_pass() && !std::exchange(full_, true)) {
        shell_->pause();
    }
}

void ZmqSession::release() {
    if (closed_ || holding_ || (return_ != nullptr && return_->is_awaited())) {
        return;
    }
    std::vector<WaitingRequest> requests = held_.take_all();
    if (std::exchange(full_, false)) {
        shell_->resume();
    }
    for (WaitingRequest& request : requests) {
        if (!closed_) {
            begin_request(std::move(request.identities), std::move(request.message));
        }
    }
}

std::optional<std::string> ZmqSession::find_work() const {
    if (return_ != nullptr && (return_->is_awaited() || return_->kept() > 0)) {
        return "clients over ZeroMQ are coming back";
    }
    if (!held_.may_pass()) {
        return "more requests wait over ZeroMQ than may pass";
    }
    if (checking_ > 0 || !replies_.empty() || iopub_->is_waiting() ||
        std::chrono::steady_clock::now() - traffic_at_ < kZmqQuiet) {
        return "a client over ZeroMQ is being served";
    }
    return std::nullopt;
}

Status ZmqSession::collect() {
    collecting_ = true;
    for (const std::shared_ptr<WatchedSocket>& socket : {shell_, control_, stdin_}) {
        socket->drain(kWaitingRequestsMax);
    }
    collecting_ = false;
    return held_.may_pass()
               ? ok()
               : Status(Error(
                     ErrorCode::kLimitExceeded,
                     session_->id() + ": more requests wait over ZeroMQ than may pass"));
}

PassedZmqSession ZmqSession::pass_on() {
    // One by one, so that as little as possible can come between the last look and the end: that
    // would be lost.
    collecting_ = true;
    for (std::shared_ptr<WatchedSocket>* socket : {&shell_, &control_, &stdin_}) {
        (*socket)->drain(kWaitingRequestsMax);
        (*socket)->close();
        socket->reset();
    }
    collecting_ = false;
    PassedZmqSession passed;
    passed.bound = true;
    passed.subscriptions = iopub_->subscriptions();
    close();
    passed.requests = held_.take_all();
    passed.seen = signer_.pass_on();
    return passed;
}

Status ZmqSession::go_on(PassedZmqSession passed) {
    BOOST_OUTCOME_TRY(signer_.go_on(passed.seen));
    for (WaitingRequest& request : passed.requests) {
        held_.add(std::move(request));
    }
    if (passed.subscriptions > 0) {
        iopub_->hold_back();
    }
    const std::weak_ptr<ZmqSession> weak = weak_from_this();
    ClientReturn::Hooks hooks;
    hooks.on_back = [weak] {
        if (const auto self = weak.lock(); self != nullptr && !self->closed_) {
            self->iopub_->release();
            self->release();
        }
    };
    hooks.send = [weak](LateReply reply) {
        if (const auto self = weak.lock(); self != nullptr) {
            self->send(std::move(reply));
        }
    };
    return_ = ClientReturn::begin(io_, passed.subscriptions, std::move(hooks));
    return ok();
}

}  // namespace cellkeep::jupyter
