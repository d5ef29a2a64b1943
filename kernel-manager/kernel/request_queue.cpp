// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/request_queue.hpp"

#include "kernel-manager/execution/file_writing.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace cellkeep::session {

namespace {

std::size_t size_of(const PendingRequest& request) {
    return request.message.frame().size() +
           (request.execution ? bytes_of(request.execution->files) : 0);
}

}  // namespace

RequestQueue::RequestQueue(
    std::size_t requests_max, std::size_t bytes_max, std::size_t* shared_bytes)
    : requests_max_(requests_max), bytes_max_(bytes_max), shared_bytes_(shared_bytes) {}

void RequestQueue::count_out(std::size_t bytes) {
    bytes_ -= bytes;
    if (shared_bytes_ != nullptr) {
        *shared_bytes_ -= bytes;
    }
}

Status RequestQueue::push(PendingRequest&& request) {
    const std::size_t size = size_of(request);
    if (requests_.size() >= requests_max_) {
        return Error(
            ErrorCode::kLimitExceeded,
            "session queue: " + std::to_string(requests_max_) + " requests are waiting already");
    }
    if ((shared_bytes_ != nullptr ? *shared_bytes_ : bytes_) + size > bytes_max_) {
        return Error(
            ErrorCode::kLimitExceeded,
            "session queue: the waiting requests would be larger than " +
                std::to_string(bytes_max_) + " bytes");
    }
    bytes_ += size;
    if (shared_bytes_ != nullptr) {
        *shared_bytes_ += size;
    }
    requests_.push_back(std::move(request));
    return ok();
}

std::optional<PendingRequest> RequestQueue::pop() {
    if (requests_.empty()) {
        return std::nullopt;
    }
    PendingRequest request = std::move(requests_.front());
    requests_.pop_front();
    count_out(size_of(request));
    return request;
}

std::vector<PendingRequest> RequestQueue::take_executions_of(
    std::string_view client_session, std::chrono::steady_clock::time_point until) {
    std::vector<PendingRequest> taken;
    std::deque<PendingRequest> kept;
    for (PendingRequest& request : requests_) {
        const protocol::Header& header = request.message.header();
        const bool matches = header.msg_type == "execute_request" &&
                             header.session == client_session && request.queued_at <= until;
        if (matches) {
            count_out(size_of(request));
            taken.push_back(std::move(request));
        } else {
            kept.push_back(std::move(request));
        }
    }
    requests_ = std::move(kept);
    return taken;
}

bool RequestQueue::holds(std::string_view msg_id) const {
    return std::any_of(requests_.begin(), requests_.end(), [&](const PendingRequest& request) {
        return request.message.header().msg_id == msg_id;
    });
}

std::optional<PendingRequest> RequestQueue::take_execution(std::string_view execution_id) {
    const auto found =
        std::find_if(requests_.begin(), requests_.end(), [&](const PendingRequest& request) {
            return request.execution && request.execution->execution->id() == execution_id;
        });
    if (found == requests_.end()) {
        return std::nullopt;
    }
    PendingRequest request = std::move(*found);
    requests_.erase(found);
    count_out(size_of(request));
    return request;
}

std::vector<PendingRequest> RequestQueue::take_all() {
    std::vector<PendingRequest> all(
        std::make_move_iterator(requests_.begin()), std::make_move_iterator(requests_.end()));
    requests_.clear();
    count_out(bytes_);
    return all;
}

bool RequestQueue::can_pass() const {
    return std::all_of(requests_.begin(), requests_.end(), [](const PendingRequest& request) {
        return request.execution && request.execution->execution->can_pass() &&
               request.execution->files.empty();
    });
}

std::vector<PassedRequest> RequestQueue::pass_on() {
    std::vector<PassedRequest> passed;
    for (PendingRequest& request : take_all()) {
        TrackedExecution& tracked = *request.execution;
        tracked.execution->pass_on();
        passed.push_back(
            {std::move(request.message),
             tracked.execution,
             tracked.recorder.pass_on().stdin_text,
             tracked.timeout,
             request.queued_at});
    }
    return passed;
}

}  // namespace cellkeep::session
