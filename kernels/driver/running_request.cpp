// SPDX-License-Identifier: Apache-2.0
#include "kernels/driver/running_request.hpp"

#include "kernels/driver/event_fields.hpp"

#include <utility>

namespace cellkeep::kernels::driver {

using nlohmann::json;

std::uint64_t RunningRequest::begin(RequestRules rules) {
    if (!rules.interruptible) {
        interrupted_ = false;
    }
    rules_ = rules;
    done_.reset();
    awaits_answer_ = false;
    id_ = ++last_id_;
    return *id_;
}

std::optional<json> RunningRequest::end() {
    id_.reset();
    rules_ = {};
    awaits_answer_ = false;
    return std::exchange(done_, std::nullopt);
}

Status RunningRequest::take_done(json event) {
    const auto id = event.find("id");
    const bool ours = id_ && !done_ && id != event.end() && id->is_number_unsigned() && *id == *id_;
    if (!ours) {
        return Error(ErrorCode::kProtocol, "done of a request that does not run");
    }
    if (text_field(event, "status").empty()) {
        event["status"] = "ok";
    }
    done_ = std::move(event);
    return ok();
}

Result<RunningRequest::Answer> RunningRequest::take_question(Asks what) const {
    if (!id_) {
        return Error(ErrorCode::kProtocol, "a question of no cell");
    }
    // After an interrupt a new question replaces the open one, whose answer is then dropped.
    if (awaits_answer_ && !interrupted_) {
        return Error(ErrorCode::kProtocol, "a question before the last one was answered");
    }
    const bool allowed = what == Asks::kInput ? rules_.allow_stdin : rules_.allow_tools;
    return allowed ? Answer::kAsk : Answer::kRefuse;
}

bool RunningRequest::take_interrupt() {
    if (!rules_.interruptible || done_) {
        return false;
    }
    interrupted_ = true;
    return true;
}

bool RunningRequest::forget_interrupt() {
    return std::exchange(interrupted_, false);
}

}  // namespace cellkeep::kernels::driver
