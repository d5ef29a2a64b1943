// SPDX-License-Identifier: Apache-2.0
//
// What clients ask of a lane's kernel: the queue in front of it and the deadlines over the
// request that is running.
#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/kernel/kernel_state.hpp"
#include "kernel-manager/kernel/reply_sink.hpp"
#include "kernel-manager/session/activity.hpp"
#include "kernel-manager/session/kernel_lane.hpp"
#include "kernel-manager/output/reply_facts.hpp"
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
    return current_.has_value() && current_->number == number;
}

bool KernelLane::is_tracked_running() const {
    return current_.has_value() && is_tracked(current_->request.message.header().msg_type);
}

void KernelLane::dispatch_next() {
    if (current_.has_value() || !process_ || !kernel_info_.has_value() || shared_.closed ||
        draining_ || kill_reason_.has_value() || ended_.has_value() || artifacts_->busy()) {
        return;
    }
    auto next = queue_.pop();
    if (!next.has_value()) {
        return;
    }
    host_.wake();
    Current current{.request = std::move(*next), .started_at = steady_clock::now()};
    current.number = next_number_++;
    const sandbox::Usage usage = shared_.counters();
    current.cpu_at_start = cpu_of(usage);
    oom_kills_seen_ = usage.oom_kills;
    guard_.begin(usage, session_limits(), current.started_at);
    current_.emplace(std::move(current));
    const std::uint64_t number = current_->number;
    change(KernelEvent::kBusy);
    if (const auto& tracked = current_->request.execution) {
        current_->peak_is_own = host_.is_alone(*this) && shared_.sandbox.restart_memory_peak();
        if (!tracked->files.empty()) {
            current_->writing = std::make_shared<FileWriting>(
                shared_.workspace, std::exchange(tracked->files, {}), shared_.setup.inputs);
        }
        tracked->execution->mark_started();
    }
    arm_deadlines();
    if (!is_current(number)) {
        return;  // no time was left for it
    }
    if (current_->writing) {
        place_files();
    } else {
        send_current();
    }
}

void KernelLane::send_current() {
    if (current_->request.execution) {
        artifacts_->begin();  // what came with it is not its own
    }
    current_->sent = true;
    if (const Status sent = process_->send(current_->request.message); sent.has_error()) {
        // The link is closed or so full that the kernel cannot be reading: it is as good as dead.
        kill_kernel({Death::Kind::kLinkBroken, 0});
    }
}

void KernelLane::cut_short(Cut cut) {
    current_->cut = cut;
    guard_.on_cut(cut);
    if (current_->writing) {
        finish_unsent();
        return;
    }
    if (current_->request.origin) {
        // An execution's answer says it by itself.
        publish(messages_.stream(
            "stderr",
            guard_.describe_cut(session_limits()) + "\n",
            current_->request.message.header_json()));
    }
    (void)send_interrupt();  // fails only if the process is gone: its report is coming
    cpu_timer_.cancel();
    wall_timer_.expires_after(limits::kInterruptGrace);
    wall_timer_.async_wait(
        [weak = weak(), cut, number = current_->number](const boost::system::error_code& error) {
            const auto self = weak.lock();
            if (!error && self && self->is_current(number) && self->current_->cut == cut) {
                self->kill_kernel({death_after(cut), 0});
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
    if (current_->cut == Cut::kNone) {
        current_->cut = Cut::kInterrupt;
    }
    if (current_->writing) {
        finish_unsent();
        return ok();
    }
    // Code that survives the interrupt feels a slow client's back-pressure again after the grace.
    uncork_timer_.expires_after(limits::kInterruptGrace);
    uncork_timer_.async_wait([weak = weak(),
                              number = current_->number](const boost::system::error_code& error) {
        const auto self = weak.lock();
        if (!error && self && self->is_current(number) && self->current_->cut == Cut::kInterrupt) {
            self->ignore_congestion_ = false;
        }
    });
    return send_interrupt();
}

bool KernelLane::interrupt_execution(const std::shared_ptr<Execution>& execution, Status& done) {
    if (current_.has_value() && current_->request.execution &&
        current_->request.execution->execution == execution) {
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

Status KernelLane::send_interrupt() {
    // The code's last words must reach us even if a slow client has stopped the reading.
    ignore_congestion_ = true;
    process_->resume_reading();
    if (ended_.has_value()) {
        return ok();  // by itself; its answer is on its way
    }
    if (!current_->begun) {
        current_->interrupt_at_busy = true;
        return ok();
    }
    return process_->send_signal(SIGINT);
}

void KernelLane::submit_input_reply(const Message& reply) {
    if (!current_.has_value() || !current_->question.has_value() || !process_ ||
        reply.header().msg_type != "input_reply") {
        return;
    }
    // Only the client whose cell asked may answer, or one that was given the question since: it
    // names it. And only once.
    const std::string& question = current_->question->header().msg_id;
    const bool was_asked = reply.header().session == current_->request.message.header().session ||
                           (!question.empty() && reply.parent().msg_id == question);
    if (!was_asked) {
        return;
    }
    current_->question.reset();
    if (process_->send(reply).has_error()) {
        kill_kernel({Death::Kind::kLinkBroken, 0});
    }
}

void KernelLane::on_input_request(const Message& request) {
    // One question at a time, of a size that a client can be sent.
    if (!current_.has_value() || current_->question.has_value() || draining_ ||
        request.header().msg_type != "input_request" ||
        request.frame().size() > limits::kInputRequestBytesMax) {
        return;
    }
    if (current_->request.origin) {
        current_->question = request;
        current_->request.origin->deliver(request);
        return;
    }
    const json answer = current_->request.execution->recorder.next_input();
    const Message reply = Message::make(
        Channel::kStdin,
        protocol::make_header(
            "input_reply", current_->request.message.header().session, "cellkeep"),
        protocol::to_json(request.header()),
        answer);
    if (process_->send(reply).has_error()) {
        kill_kernel({Death::Kind::kLinkBroken, 0});
    }
}

void KernelLane::on_reply(const Message& reply) {
    if (!current_.has_value() || current_->replied ||
        reply.parent().msg_id != current_->request.message.header().msg_id) {
        return;  // an answer to nothing that we asked
    }
    current_->replied = true;
    if (current_->request.execution) {
        current_->request.execution->recorder.on_reply(reply);
    } else {
        current_->request.origin->deliver(reply);
    }
    if (reply.header().msg_type != "execute_reply") {
        return;
    }
    guard_.on_reply(reply);
    if (says(reply, protocol::Member::kStatus, "error")) {
        abort_followers(current_->request.message);
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

ExecutionMetrics KernelLane::measure(const Current& current) const {
    using std::chrono::duration_cast;
    using std::chrono::microseconds;
    ExecutionMetrics metrics;
    metrics.wall = duration_cast<microseconds>(steady_clock::now() - current.started_at);
    metrics.queued = duration_cast<microseconds>(current.started_at - current.request.queued_at);
    // settle_limits() has asked for the CPU time; without a cgroup both are 0.
    metrics.cpu = std::max(microseconds{0}, current.cpu_at_end - current.cpu_at_start);
    if (const auto peak = shared_.sandbox.memory_peak(); peak.has_value()) {
        metrics.memory_peak_bytes = peak.value();
        metrics.memory_peak_is_own = current.peak_is_own;
    }
    return metrics;
}

void KernelLane::finish_current() {
    const auto self = hold();  // an answer may let go of the session
    wall_timer_.cancel();
    cpu_timer_.cancel();
    uncork_timer_.cancel();
    ignore_congestion_ = false;
    Current current = std::move(*current_);
    current_.reset();
    if (current.sent) {
        // Its own code can have said so.
        claimed_end_.watch(
            current.started_at +
                std::chrono::duration_cast<steady_clock::duration>(current.wall_limit),
            [weak = weak()](ClaimedEnd::Step step) {
                if (const auto lane = weak.lock()) {
                    lane->prove_end(step);
                }
            });
    }
    change(KernelEvent::kIdle);
    const std::string& type = current.request.message.header().msg_type;
    if (current.request.execution) {
        TrackedExecution& execution = *current.request.execution;
        ExecutionResult result = current.refused.has_value()
                                     ? execution.recorder.finish_refused(*current.refused)
                                     : execution.recorder.finish(current.cut);
        result.metrics = measure(current);
        if (current.hit.has_value()) {
            apply(*current.hit, result);
        }
        if (current.sent) {
            complete_with_artifacts(current.request.execution, std::move(result));
        } else {
            host_.complete(execution, std::move(result));
        }
    } else if (!current.replied && find_reply_type(type).has_value()) {
        // The reply precedes the idle on the same ordered link: there will be none.
        current.request.origin->deliver(messages_.error_reply(
            current.request.message,
            "NotImplementedError",
            type + " is not supported by this kernel."));
    }
    if (is_tracked(type)) {
        host_.touch();  // idle counts from its end
    }
    host_.note_use();
    dispatch_next();
    host_.review_life();
}

}  // namespace cellkeep::session
