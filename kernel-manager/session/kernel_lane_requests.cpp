// SPDX-License-Identifier: Apache-2.0
//
// What clients ask of a lane's kernel: the queue in front of it and the deadlines over the
// request that is running.
#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/kernel/kernel_state.hpp"
#include "kernel-manager/kernel/reply_sink.hpp"
#include "kernel-manager/output/reply_facts.hpp"
#include "kernel-manager/session/activity.hpp"
#include "kernel-manager/session/kernel_lane.hpp"
#include "protocol/limits.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <csignal>
#include <utility>

namespace cellkeep::session {

using nlohmann::json;
using protocol::Channel;
using protocol::Message;
using std::chrono::steady_clock;

void KernelLane::submit_shell(Message request, std::shared_ptr<ReplySink> origin) {
    if (state_ == KernelState::kDead) {
        refuse(
            std::move(request),
            std::move(origin),
            "KernelDead",
            death_ ? describe_end(*death_, Aftermath::kLeftDead) : "The interpreter is gone.");
        return;
    }
    const bool runs_code = request.header().msg_type == "execute_request";
    if (const auto refused = runs_code ? shared_.account.find_exhausted(session_limits())
                                       : std::optional<Refusal>()) {
        refuse(
            std::move(request),
            std::move(origin),
            "BudgetExhausted",
            refused->message + " " + refused->hint);
        return;
    }
    const Message copy = request;
    auto pushed = queue_.push({std::move(request), origin, nullptr, steady_clock::now()});
    if (pushed.has_error()) {
        refuse(copy, std::move(origin), "QueueFull", pushed.error().message());
        return;
    }
    if (runs_code) {
        shared_.account.accept_client();
    }
    dispatch_next();
}

Status KernelLane::enqueue(PendingRequest request) {
    return queue_.push(std::move(request));
}

void KernelLane::refuse(
    Message request, std::shared_ptr<ReplySink> origin, std::string ename, std::string evalue) {
    // Later, because we are inside submit(); between busy and idle, because clients wait for idle.
    boost::asio::post(
        shared_.io,
        [self = hold(),
         request = std::move(request),
         origin = std::move(origin),
         ename = std::move(ename),
         evalue = std::move(evalue)] {
            self->publish(self->messages_.status("busy", &request));
            if (find_reply_type(request.header().msg_type).has_value()) {
                origin->deliver(self->messages_.error_reply(request, ename, evalue));
            }
            self->publish(self->messages_.status("idle", &request));
        });
}

bool KernelLane::is_current(std::uint64_t number) const {
    return current_.has_value() && current_->number() == number;
}

bool KernelLane::is_tracked_running() const {
    return current_.has_value() && is_tracked(current_->message().header().msg_type);
}

void KernelLane::dispatch_next() {
    if (current_.has_value() || !process_ || !kernel_info_.has_value() || shared_.closed ||
        draining_ || end_.is_near() || artifacts_->busy()) {
        return;
    }
    auto next = queue_.pop();
    if (!next.has_value()) {
        return;
    }
    host_.wake();
    const sandbox::Usage usage = shared_.counters();
    const steady_clock::time_point now = steady_clock::now();
    end_.see_oom_kills(usage.oom_kills);
    monitor_.begin(usage, session_limits(), now);
    const std::uint64_t number = next_number_++;
    current_.emplace(std::move(*next), number, now, cpu_of(usage));
    change(KernelEvent::kBusy);
    if (const auto& tracked = current_->execution()) {
        if (host_.is_alone(*this) && shared_.sandbox.restart_memory_peak()) {
            current_->own_memory_peak();
        }
        if (!tracked->files.empty()) {
            current_->begin_writing(std::make_shared<FileWriting>(
                shared_.workspace, std::exchange(tracked->files, {}), shared_.setup.inputs));
        }
        tracked->execution->mark_started();
    }
    arm_deadlines(now, cpu_of(usage));
    if (!is_current(number)) {
        return;  // no time was left for it
    }
    if (current_->writing()) {
        place_files();
    } else {
        send_current();
    }
}

void KernelLane::send_current() {
    if (current_->execution()) {
        artifacts_->begin();  // what came with it is not its own
    }
    current_->on_sent();
    if (const Status sent = process_->send(current_->message()); sent.has_error()) {
        // The link is closed or so full that the kernel cannot be reading: it is as good as dead.
        kill_kernel({Death::Kind::kLinkBroken, 0});
    }
}

void KernelLane::cut_short(Cut cut) {
    monitor_.on_cut(cut);
    const RunningRequest::CutStep step =
        current_->cut_short(cut, steady_clock::now(), cpu_of(shared_.counters()));
    if (step == RunningRequest::CutStep::kAbandon) {
        finish_unsent();
        return;
    }
    if (current_->request().origin) {
        // An execution's answer says it by itself.
        publish(messages_.stream(
            "stderr",
            monitor_.describe_cut(session_limits()) + "\n",
            current_->message().header_json()));
    }
    (void)take_step(step);  // fails only if the process is gone: its report is coming
    cpu_timer_.cancel();
    check_grace();
}

void KernelLane::check_grace() {
    const RunningRequest::Look look = current_->look_at_grace(
        steady_clock::now(), cpu_of(shared_.counters()), session_limits().cpu_cores);
    if (look.passed) {
        kill_kernel({death_after(current_->cut()), 0});
        return;
    }
    wall_timer_.expires_after(look.again_in);
    wall_timer_.async_wait(
        [weak = weak(), number = current_->number()](const boost::system::error_code& error) {
            const auto self = weak.lock();
            if (!error && self && self->is_current(number)) {
                self->check_grace();
            }
        });
}

Status KernelLane::interrupt() {
    if (shared_.closed || !process_) {
        return Error(ErrorCode::kConflict, "interrupt: there is no interpreter to interrupt");
    }
    if (!current_.has_value()) {
        return ok();  // idle: nothing to stop
    }
    const RunningRequest::CutStep step = current_->interrupt();
    if (step == RunningRequest::CutStep::kAbandon) {
        finish_unsent();
        return ok();
    }
    // Code that survives the interrupt feels a slow client's back-pressure again after the grace.
    uncork_timer_.expires_after(limits::kInterruptGrace);
    uncork_timer_.async_wait(
        [weak = weak(), number = current_->number()](const boost::system::error_code& error) {
            const auto self = weak.lock();
            if (!error && self && self->is_current(number) &&
                self->current_->cut() == Cut::kInterrupt) {
                self->ignore_congestion_ = false;
            }
        });
    return take_step(step);
}

bool KernelLane::interrupt_execution(const std::shared_ptr<Execution>& execution, Status& done) {
    if (current_.has_value() && current_->execution() &&
        current_->execution()->execution == execution) {
        done = interrupt();
        return true;
    }
    auto waiting = queue_.take_execution(execution->id());
    if (!waiting.has_value()) {
        return false;
    }
    publish(messages_.status("busy", &waiting->message));
    ExecutionResult result = waiting->execution->recorder.finish(Cut::kInterrupt);
    result.error->name = "Cancelled";
    result.error->message = "It was taken out of the queue before it ran.";
    result.metrics.queued = std::chrono::duration_cast<std::chrono::microseconds>(
        steady_clock::now() - waiting->queued_at);
    host_.complete(*waiting->execution, std::move(result));
    publish(messages_.status("idle", &waiting->message));
    host_.review_life();
    done = ok();
    return true;
}

Status KernelLane::take_step(RunningRequest::CutStep step) {
    // The code's last words must reach us even if a slow client has stopped the reading.
    ignore_congestion_ = true;
    process_->resume_reading();
    if (end_.is_ended() || step != RunningRequest::CutStep::kInterrupt) {
        return ok();  // it has ended by itself, or its busy is awaited
    }
    return process_->send_signal(SIGINT);
}

void KernelLane::submit_input_reply(const Message& reply) {
    const bool expected = current_.has_value() && process_ &&
                          reply.header().msg_type == "input_reply" &&
                          current_->take_input_reply(reply);
    if (!expected) {
        return;
    }
    if (process_->send(reply).has_error()) {
        kill_kernel({Death::Kind::kLinkBroken, 0});
    }
}

void KernelLane::on_input_request(const Message& request) {
    // One question at a time, of a size that a client can be sent.
    if (!current_.has_value() || draining_ || request.header().msg_type != "input_request" ||
        request.frame().size() > limits::kInputRequestBytesMax) {
        return;
    }
    if (const auto origin = current_->request().origin) {
        if (current_->on_input_request(request)) {
            origin->deliver(request);
        }
        return;
    }
    const json answer = current_->execution()->recorder.next_input();
    const Message reply = Message::make(
        Channel::kStdin,
        protocol::make_header("input_reply", current_->message().header().session, "cellkeep"),
        protocol::to_json(request.header()),
        answer);
    if (process_->send(reply).has_error()) {
        kill_kernel({Death::Kind::kLinkBroken, 0});
    }
}

void KernelLane::on_reply(const Message& reply) {
    if (!current_.has_value() || !current_->is_parent_of(reply) || !current_->on_reply()) {
        return;  // an answer to nothing that we asked
    }
    if (const auto& execution = current_->execution()) {
        execution->recorder.on_reply(reply);
    } else {
        current_->request().origin->deliver(reply);
    }
    if (reply.header().msg_type != "execute_reply") {
        return;
    }
    monitor_.on_reply(reply);
    if (says(reply, protocol::Member::kStatus, "error")) {
        abort_followers(current_->message());
    }
}

void KernelLane::abort_followers(const Message& failed) {
    const std::string_view stop =
        failed.outline().find(protocol::Member::kStopOnError, failed.content_json());
    if (!failed.outline().valid || (!stop.empty() && stop != "true")) {
        return;
    }
    // Only what the same client queued behind: another client's work does not depend on it.
    for (PendingRequest& request : queue_.take_executions_of(failed.header().session)) {
        publish(messages_.status("busy", &request.message));
        if (request.execution) {
            host_.complete(*request.execution, request.execution->recorder.finish(Cut::kInterrupt));
        } else {
            request.origin->deliver(messages_.error_reply(
                request.message, "ExecutionAborted", "An earlier cell of this client failed."));
        }
        publish(messages_.status("idle", &request.message));
    }
}

ExecutionMetrics KernelLane::measure(const RunningRequest& request) const {
    const auto peak = shared_.sandbox.memory_peak();
    return request.measure(
        steady_clock::now(),
        peak.has_value() ? std::optional<std::uint64_t>(peak.value()) : std::nullopt);
}

void KernelLane::finish_current() {
    const auto self = hold();  // an answer may let go of the session
    wall_timer_.cancel();
    cpu_timer_.cancel();
    uncork_timer_.cancel();
    ignore_congestion_ = false;
    RunningRequest current = std::move(*current_);
    current_.reset();
    if (current.is_sent()) {
        // Its own code can have said so.
        claimed_end_.watch(current.wall_deadline(), [weak = weak()](ClaimedEnd::Step step) {
            if (const auto lane = weak.lock()) {
                lane->prove_end(step);
            }
        });
    }
    change(KernelEvent::kIdle);
    const std::string& type = current.message().header().msg_type;
    if (current.execution()) {
        TrackedExecution& execution = *current.execution();
        ExecutionResult result = current.refusal().has_value()
                                     ? execution.recorder.finish_refused(*current.refusal())
                                     : execution.recorder.finish(current.cut());
        result.metrics = measure(current);
        if (current.hit().has_value()) {
            apply(*current.hit(), result);
        }
        if (current.is_sent()) {
            complete_with_artifacts(current.execution(), std::move(result));
        } else {
            host_.complete(execution, std::move(result));
        }
    } else if (!current.is_replied() && find_reply_type(type).has_value()) {
        // The reply precedes the idle on the same ordered link: there will be none.
        current.request().origin->deliver(messages_.error_reply(
            current.message(), "NotImplementedError", type + " is not supported by this kernel."));
    }
    if (is_tracked(type)) {
        host_.touch();  // idle counts from its end
    }
    host_.note_use();
    dispatch_next();
    host_.review_life();
}

}  // namespace cellkeep::session
