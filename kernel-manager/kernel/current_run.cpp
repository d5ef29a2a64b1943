// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/current_run.hpp"

#include "kernel-manager/output/reply_facts.hpp"
#include "protocol/limits.hpp"

#include <cerrno>
#include <utility>

namespace cellkeep::session {

using nlohmann::json;
using protocol::Channel;
using protocol::Message;
using std::chrono::steady_clock;

CurrentRun::CurrentRun(Parts parts, const SessionLimits& limits, Owner owner, KeepAlive keep_alive)
    : process_(parts.process),
      output_(parts.output),
      watch_(parts.watch),
      files_(parts.files),
      limits_(limits),
      owner_(std::move(owner)),
      keep_alive_(std::move(keep_alive)) {}

bool CurrentRun::is_current(std::uint64_t number) const {
    return current_.has_value() && current_->number() == number;
}

void CurrentRun::publish_status(std::string_view state, const Message& parent) {
    output_.publish(process_.messages().status(state, &parent));
}

// --- its beginning

void CurrentRun::begin(PendingRequest request) {
    owner_.wake();
    const RunWatch::Start start = watch_.begin();
    process_.see_oom_kills(start.oom_kills);
    const std::uint64_t number = next_number_++;
    current_.emplace(std::move(request), number, start.at, start.cpu);
    output_.begin_run(*current_);
    owner_.change(KernelEvent::kBusy);
    if (const auto& tracked = current_->execution()) {
        if (owner_.restart_memory_peak()) {
            current_->own_memory_peak();
        }
        if (auto writing = files_.take_files(*tracked)) {
            current_->begin_writing(std::move(writing));
        }
        tracked->execution->mark_started();
    }
    watch_.watch(*current_, start);
    if (!is_current(number)) {
        return;  // no time was left for it
    }
    if (current_->writing()) {
        files_.place(current_->writing(), [this, number] { on_files_placed(number); });
    } else {
        send();
    }
}

void CurrentRun::send() {
    if (current_->execution()) {
        files_.begin();  // what came with it is not its own
    }
    current_->on_sent();
    // An error: the link is closed or so full that the kernel cannot be reading. It is as good as
    // dead.
    send_or_kill(current_->message());
}

void CurrentRun::send_or_kill(const Message& message) {
    if (process_.send(message).has_error()) {
        process_.kill({Death::Kind::kLinkBroken, 0});
    }
}

void CurrentRun::on_files_placed(std::uint64_t number) {
    if (!is_current(number) || !current_->writing()) {
        return;  // it ended meanwhile
    }
    const Status& placed = current_->writing()->status();
    if (placed.has_error()) {
        current_->refuse(placed.error());
        if (placed.error().code() == ErrorCode::kLimitExceeded) {
            // As if the code itself had written them.
            ErrorFacts facts;
            facts.number = ENOSPC;
            facts.full = sandbox::kWorkspacePath;
            if (auto hit = find_limit(facts, {}, limits_)) {
                current_->set_hit(std::move(*hit));
            }
        }
        finish_unsent();
        return;
    }
    current_->end_writing();
    send();
}

void CurrentRun::finish_unsent() {
    current_->writing()->cancel();
    current_->end_writing();
    settle(std::nullopt);
    if (current_->refusal().has_value() && current_->hit().has_value()) {
        owner_.log_limit(current_->execution()->execution->id(), *current_->hit());
    }
    const Message request = current_->message();
    publish_status("busy", request);
    publish_status("idle", request);
    finish();
}

// --- what the kernel says

void CurrentRun::on_iopub(Message message) {
    const bool is_status = message.header().msg_type == "status";
    const bool of_current = is_status && current_.has_value() && current_->is_parent_of(message);
    if (is_status && !of_current && current_.has_value() && !current_->is_begun()) {
        // The true end of a run whose end was claimed: its last words belong before the next run's.
        (void)process_.drain_pipes(-1);
    }
    const bool idle = of_current && says(message, protocol::Member::kExecutionState, "idle");
    if (of_current && !idle && says(message, protocol::Member::kExecutionState, "busy")) {
        on_busy();
    }
    if (idle) {
        // What C code and finished subprocesses printed is in the pipes by now: it belongs before
        // the idle. Files that its code made are in the watch of the workspace by now.
        if (!process_.drain_pipes(files_.watch_fd())) {
            files_.note_unchanged();
        }
    }
    if (idle && current_.has_value()) {
        owner_.take_denials();
        settle(std::nullopt);
    }
    if (!is_status && is_of_flood() && message.header().msg_type != "error") {
        return;
    }
    if (message.header().msg_type == "error" && current_.has_value() &&
        current_->is_parent_of(message)) {
        current_->on_error_shown(steady_clock::now());
    }
    const bool ends_debug_request = is_status && message.parent().msg_type == "debug_request" &&
                                    says(message, protocol::Member::kExecutionState, "idle");
    output_.publish(std::move(message));
    if (idle && current_.has_value()) {
        finish();
    } else if (ends_debug_request) {
        repeat_busy();
    }
}

void CurrentRun::on_busy() {
    if (!current_.has_value() || current_->is_begun()) {
        return;
    }
    process_.settle_claimed_end();
    // Until now, what came through the pipes was of an earlier run, or of none.
    output_.set_text_parent(std::string(current_->message().header_json()));
    if (current_->on_busy() && process_.has_process()) {
        (void)process_.interrupt();  // fails only if the process is gone
    }
}

bool CurrentRun::is_of_flood() const {
    // The run is being cut for what it says: more of it is dropped.
    return current_.has_value() && current_->cut() == Cut::kOutputLimit;
}

void CurrentRun::on_text(OutputStream stream, std::string_view text) {
    watch_.count_output(text.size());
    if (!is_of_flood()) {
        output_.publish(process_.messages().stream(
            stream == OutputStream::kStderr ? "stderr" : "stdout", text, output_.text_parent()));
    }
}

void CurrentRun::on_reply(const Message& reply) {
    output_.flush();  // it goes another way than what was printed before it
    if (!current_.has_value() || !current_->is_parent_of(reply) || !current_->on_reply()) {
        return;  // an answer to nothing that was asked
    }
    if (const auto& execution = current_->execution()) {
        execution->recorder.on_reply(reply);
    } else {
        current_->request().origin->deliver(reply);
    }
    if (reply.header().msg_type != "execute_reply") {
        return;
    }
    watch_.on_reply(reply);
    if (current_.has_value() && says(reply, protocol::Member::kStatus, "error")) {
        owner_.on_failed(current_->message(), current_->error_shown_at(steady_clock::now()));
    }
}

void CurrentRun::repeat_busy() {
    if (current_.has_value() && current_->is_begun()) {
        // Clients show the newest status, whosever it is; the kernel is still at work.
        publish_status("busy", current_->message());
    }
}

// --- its limits

void CurrentRun::cut(Cut limit) {
    const RunningRequest::CutStep step = watch_.cut_short(limit);
    if (step == RunningRequest::CutStep::kAbandon) {
        finish_unsent();
        return;
    }
    const std::uint64_t number = current_->number();
    if (current_->request().origin) {
        // An execution's answer says it by itself.
        output_.publish(process_.messages().stream(
            "stderr", watch_.describe_cut() + "\n", current_->message().header_json()));
    }
    if (!is_current(number)) {
        return;  // a client that got an answer has ended the session
    }
    (void)take_step(step);  // fails only if the process is gone: its report is coming
    watch_.begin_grace();
}

void CurrentRun::settle(const std::optional<Death>& death) {
    auto hit = watch_.settle(death);
    if (!hit.has_value()) {
        return;
    }
    current_->set_hit(*hit);
    const auto& execution = current_->execution();
    owner_.log_limit(execution ? execution->execution->id() : "", *hit);
    // Its client has learned of a cut already, and the error message reports a death.
    if (!execution && !is_limit(current_->cut()) && !death.has_value()) {
        output_.publish(process_.messages().stream(
            "stderr", hit->message + " " + hit->hint + "\n", current_->message().header_json()));
    }
}

// --- its end

ExecutionMetrics CurrentRun::measure(const RunningRequest& run) const {
    return run.measure(steady_clock::now(), owner_.memory_peak());
}

/// Nothing runs any more, and no call of a tool waits for an answer.
RunningRequest CurrentRun::take_current() {
    RunningRequest run = std::move(*current_);
    current_.reset();
    own_tools_.reset();
    if (const auto& execution = run.execution()) {
        execution->execution->end_tool_calls();
    }
    return run;
}

void CurrentRun::finish() {
    const auto owner = keep_alive_();  // an answer may let go of the session
    watch_.forget();
    output_.restore_pressure();
    output_.end_run();
    RunningRequest current = take_current();
    if (current.is_sent()) {
        process_.watch_claimed_end(current.wall_deadline());
    }
    owner_.change(KernelEvent::kIdle);
    answer(current);
    owner_.on_over(current.message().header().msg_type);
}

void CurrentRun::answer(const RunningRequest& run) {
    const std::string& type = run.message().header().msg_type;
    if (!run.execution()) {
        if (!run.is_replied() && find_reply_type(type).has_value()) {
            // The reply precedes the idle on the same ordered link: there will be none.
            run.request().origin->deliver(process_.messages().error_reply(
                run.message(), "NotImplementedError", type + " is not supported by this kernel."));
        }
        return;
    }
    ExecutionRecorder& recorder = run.execution()->recorder;
    ExecutionResult result = run.refusal().has_value() ? recorder.finish_refused(*run.refusal())
                                                       : recorder.finish(run.cut());
    conclude(run, measure(run), std::move(result));
}

void CurrentRun::conclude(
    const RunningRequest& run, const ExecutionMetrics& metrics, ExecutionResult result) {
    result.metrics = metrics;
    if (run.hit().has_value()) {
        apply(*run.hit(), result);
    }
    if (run.is_sent()) {
        files_.finish(run.execution(), std::move(result), limits_.artifact_bytes);
    } else {
        owner_.complete(*run.execution(), std::move(result));
    }
}

void CurrentRun::on_kernel_exit() {
    watch_.stop_timers();
    output_.keep_pressure();
}

void CurrentRun::on_kernel_lost() {
    watch_.stop_timers();
    output_.restore_pressure();
}

std::optional<Message> CurrentRun::fail(const Death& death, const std::string& text) {
    output_.flush();  // the last words come before the answer
    if (!current_.has_value()) {
        return std::nullopt;
    }
    settle(death);
    const ExecutionMetrics metrics = measure(*current_);
    watch_.forget();
    output_.end_run();
    const RunningRequest run = take_current();
    if (run.writing()) {
        run.writing()->cancel();
    }
    const PendingRequest& request = run.request();
    // Under the cell that it happened to. A client that asked for the end needs no alarm.
    const bool news = is_news(death);
    if (news && run.is_replied()) {
        output_.publish(
            process_.messages().stream("stderr", text + "\n", request.message.header_json()));
    } else if (news) {
        output_.publish(process_.messages().error(request.message, "KernelDied", text));
    }
    if (request.execution) {
        ExecutionResult result = request.execution->recorder.finish_dead(death);
        owner_.note_restored(result);
        conclude(run, metrics, std::move(result));
    } else if (!run.is_replied() && find_reply_type(request.message.header().msg_type)) {
        // At once: a session that is being closed lets go of its clients right after this.
        request.origin->deliver(
            process_.messages().error_reply(request.message, "KernelDied", text));
    }
    publish_status("idle", request.message);
    return request.message;
}

// --- its way to another program

std::size_t CurrentRun::passed_bytes() const {
    if (!can_pass()) {
        return 0;
    }
    return current_->message().frame().size() + files_.passed_bytes() +
           current_->execution()->recorder.passed_bytes();
}

PassedRun CurrentRun::pass_on() {
    PassedRun passed{
        .message = current_->message(),
        .execution = current_->execution()->execution,
        .recorder = current_->execution()->recorder.pass_on(),
        .timeout = current_->execution()->timeout,
        .queued_at = current_->request().queued_at,
        .request = current_->pass_on(),
        .watch = watch_.pass_on(),
        .files = files_.pass_on()};
    passed.execution->pass_on();
    output_.end_run();
    current_.reset();
    own_tools_.reset();
    return passed;
}

Status CurrentRun::go_on(PassedRun passed, ExecutionRecorder recorder) {
    BOOST_OUTCOME_TRY(recorder.go_on(std::move(passed.recorder)));
    const std::uint64_t number = next_number_++;
    auto tracked = std::make_shared<TrackedExecution>(
        TrackedExecution{std::move(passed.execution), std::move(recorder), passed.timeout, {}});
    current_.emplace(RunningRequest::go_on(
        {std::move(passed.message), nullptr, std::move(tracked), passed.queued_at},
        number,
        passed.request));
    output_.begin_run(*current_);
    owner_.change(KernelEvent::kBusy);
    files_.go_on(std::move(passed.files));
    watch_.go_on(*current_, std::move(passed.watch));
    return ok();
}

}  // namespace cellkeep::session
