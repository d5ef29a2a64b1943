// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/inbox.hpp"

#include <nlohmann/json.hpp>

#include <poll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <utility>

namespace cellkeep::kernels {

Result<std::optional<protocol::Message>> Inbox::next() {
    if (!held_.empty()) {
        std::optional<protocol::Message> message(std::move(held_.front()));
        held_.pop_front();
        return message;
    }
    return receive();
}

Inbox::Arrival Inbox::receive() {
    if (!arrived_) {
        return link_.read();
    }
    eventfd_t one = 0;
    while (::eventfd_read(arrived_.get(), &one) < 0) {
        if (errno == EINTR) {
            continue;
        }
        if (errno != EAGAIN) {
            return Error::from_errno(errno, "eventfd_read(kernel link)");
        }
        pollfd entry{arrived_.get(), POLLIN, 0};
        (void)::poll(&entry, 1, -1);  // Ignored: an interrupted wait looks again.
    }
    const std::lock_guard lock(shared_mutex_);
    Arrival arrival = shared_.front();
    const bool is_end = !arrival || !arrival.value();
    if (is_end) {
        (void)::eventfd_write(arrived_.get(), 1);  // Ignored: only an overflow fails.
    } else {
        shared_.pop_front();
    }
    return arrival;
}

Status Inbox::share() {
    const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
    if (fd < 0) {
        return Error::from_errno(errno, "eventfd");
    }
    arrived_ = UniqueFd(fd);
    return ok();
}

std::optional<protocol::Message> Inbox::divert(std::string_view type) {
    while (true) {
        Arrival arrival = link_.read();
        if (arrival && arrival.value() &&
            arrival.value()->channel() == protocol::Channel::kControl &&
            arrival.value()->header().msg_type == type) {
            return std::move(arrival.value());
        }
        if (!hand_over(std::move(arrival))) {
            return std::nullopt;
        }
    }
}

/// False: that was the last one.
bool Inbox::hand_over(Arrival arrival) {
    bool more = arrival && arrival.value();
    {
        const std::lock_guard lock(shared_mutex_);
        if (more && shared_.size() >= kHeldMessagesMax) {
            arrival = Error(
                ErrorCode::kLimitExceeded,
                "kernel link: more than " + std::to_string(kHeldMessagesMax) +
                    " messages for a busy kernel");
            more = false;
        }
        shared_.push_back(std::move(arrival));
    }
    (void)::eventfd_write(arrived_.get(), 1);  // Ignored: only an overflow fails.
    return more;
}

void Inbox::abandon() {
    arrived_ = UniqueFd();
    link_.abandon();
}

Status Inbox::request_input(Outbox& outbox, std::string_view prompt, bool password) {
    const nlohmann::json content{{"prompt", prompt}, {"password", password}};
    return ask(outbox, "input_request", protocol::dump_json(content));
}

Status Inbox::ask(Outbox& outbox, std::string_view type, std::string_view content) {
    const std::string parent = outbox.output_parent();
    BOOST_OUTCOME_TRY(
        question_id_,
        outbox.send(protocol::Channel::kStdin, parent, {.type = type, .content = content}));
    return ok();
}

Result<std::optional<protocol::Message>> Inbox::read_answer(std::string_view type) {
    BOOST_OUTCOME_TRY(std::optional<protocol::Message> message, receive());
    if (!message) {
        return Error(ErrorCode::kUnavailable, "kernel link: closed while waiting for an answer");
    }
    if (message->channel() != protocol::Channel::kStdin) {
        if (held_.size() >= kHeldMessagesMax) {
            return Error(
                ErrorCode::kLimitExceeded,
                "kernel link: more than " + std::to_string(kHeldMessagesMax) +
                    " messages while waiting for an answer");
        }
        held_.push_back(std::move(*message));
        return std::optional<protocol::Message>();
    }
    // JupyterLab answers with parent {}; jupyter_client names the request. Any other parent is the
    // answer to a question that was interrupted.
    const std::string& parent = message->parent().msg_id;
    const bool ours = parent.empty() || parent == question_id_;
    if (message->header().msg_type != type || !ours) {
        return std::optional<protocol::Message>();
    }
    return message;
}

Result<std::optional<InputReply>> Inbox::read_input() {
    BOOST_OUTCOME_TRY(const auto message, read_answer("input_reply"));
    if (!message) {
        return std::optional<InputReply>();
    }
    BOOST_OUTCOME_TRY(const nlohmann::json content, message->parse_content());
    InputReply reply;
    if (const auto value = content.find("value"); value != content.end() && value->is_string()) {
        reply.value = value->get<std::string>();
    }
    if (const auto eof = content.find("eof"); eof != content.end() && eof->is_boolean()) {
        reply.eof = eof->get<bool>();
    }
    return std::optional<InputReply>(std::move(reply));
}

}  // namespace cellkeep::kernels
