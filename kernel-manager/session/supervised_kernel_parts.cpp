// SPDX-License-Identifier: Apache-2.0
//
// How the parts of a kernel are connected: what each asks for, and which of the others has it. And
// how they pass to another program in the server's process.
#include "kernel-manager/session/supervised_kernel.hpp"
#include "protocol/json.hpp"

#include <chrono>
#include <utility>

namespace cellkeep::session {

using protocol::Message;
using std::chrono::steady_clock;

ProcessSupervisor::Settings SupervisedKernel::process_settings() const {
    const std::string name = "cellkeep-" + identity_.session_id;
    return {
        .name = is_main() ? name : name + "-" + spec().language,
        .start_timeout = identity_.start_timeout,
        .first_inside = is_main(),
        .spare = identity_.spare};
}

ProcessSupervisor::Sandbox SupervisedKernel::process_sandbox(UsageMeter& usage) {
    return {
        .start = [this](Interpreter::Events events) { return start_process(std::move(events)); },
        .begin_sweep = sandbox_.begin_sweep,
        .postpones_launch = [this] { return sandbox_.postpones_launch() || begin_revival(); },
        .goes_on = [this] { return revival_.has_value(); },
        .wake = sandbox_.wake,
        .oom_kills = [&usage] { return usage.counters().oom_kills; },
        .is_paused = sandbox_.is_paused,
        .halt = sandbox_.halt};
}

ProcessSupervisor::Listener SupervisedKernel::process_listener() {
    return {
        .change = [this](KernelEvent event) { change(event); },
        .publish = [this](Message message) { publish(std::move(message)); },
        .on_message = [this](Message message) { on_message(std::move(message)); },
        .on_text = [this](
                       OutputStream stream, std::string_view text) { run_.on_text(stream, text); },
        .awaits_busy = [this] { return run_.awaits_busy(); },
        .on_started = [this] { output_.set_text_parent("{}"); },
        .on_ready = [this] { on_ready(); },
        .running = [this] { return run_.message(); },
        .fail_running =
            [this](const Death& death, const std::string& text) { (void)run_.fail(death, text); },
        .fail_waiting =
            [this](const Death& death, const std::string& text) { waiting_.fail_all(death, text); },
        .on_lost = [this](const ProcessSupervisor::Loss& loss) { return on_lost(loss); },
        .on_left_dead =
            [this](const Death& death) {
                answer_waiting_for_info();
                owner_.on_left_dead(death);
            }};
}

KernelOutput::Hooks SupervisedKernel::output_hooks(Activity& activity) {
    return {
        .note =
            [&activity](const Message& message, const Message* running) {
                activity.note_output(
                    message.parent().msg_type,
                    running != nullptr && is_tracked(running->header().msg_type),
                    steady_clock::now());
            },
        .pause_reading = [this] { process_.pause_reading(); },
        .resume_reading = [this] { process_.resume_reading(); }};
}

RunWatch::Counters SupervisedKernel::run_counters(UsageMeter& usage) const {
    return {
        .session = [&usage] { return usage.counters(); },
        .at_begin = [&usage] { return usage.recent_counters(); },
        .session_cpu = [&usage] { return usage.cpu_time(); },
        .own_cpu = [&usage, group = group()] { return usage.cpu_time(group); },
        .paused_for = sandbox_.paused_for};
}

RunWatch::Owner SupervisedKernel::watch_owner() {
    return {
        .cut = [this](Cut limit) { run_.cut(limit); },
        .kill = [this](const Death& why) { process_.kill(why); }};
}

ExecutionFiles::Owner SupervisedKernel::files_owner() {
    return {.complete = owner_.complete, .on_free = [this] {
                dispatch();
                owner_.review_life();
            }};
}

CurrentRun::Owner SupervisedKernel::run_owner(Activity& activity) {
    return {
        .complete = owner_.complete,
        .on_failed =
            [this](const Message& request, std::chrono::steady_clock::time_point shown_at) {
                waiting_.abort_followers(request, shown_at);
            },
        .on_over =
            [this, &activity](const std::string& type) {
                if (is_tracked(type)) {
                    activity.touch(steady_clock::now());  // idle counts from its end
                }
                if (type == "execute_request") {
                    owner_.note_run(steady_clock::now() - begun_at_);
                }
                owner_.note_use();
                on_failed_end();
                dispatch();
                owner_.review_life();
            },
        .change = [this](KernelEvent event) { change(event); },
        .wake = sandbox_.wake,
        .take_denials =
            [this] {
                // Of no use to a run that succeeded; but the next one must not be charged with
                // them. If none waits, they come in their turn before it.
                if (watch_.has_failed() || waiting_.size() > 0) {
                    sandbox_.take_denials();
                }
            },
        .restart_memory_peak = sandbox_.restart_memory_peak,
        .memory_peak = sandbox_.memory_peak,
        .log_limit = log_.limit,
        .note_restored =
            [this](ExecutionResult& result) {
                if (revival_ && !process_.will_stay_dead()) {
                    set_restored(result, *revival_);
                }
            },
        .operator_access = owner_.operator_access};
}

RequestDispatcher::Kernel SupervisedKernel::dispatcher_kernel() {
    return {
        .begin =
            [this](PendingRequest request) {
                ++begun_;
                begun_at_ = steady_clock::now();
                run_.begin(std::move(request));
            },
        .publish = [this](Message message) { publish(std::move(message)); },
        .complete = owner_.complete,
        .is_free =
            [this] {
                return !held_ && !owner_.postpones_requests() && !run_.is_running() &&
                       process_.takes_requests() && !process_.is_copying() && !files_.busy();
            },
        .messages = [this]() -> const ServerMessages& { return process_.messages(); }};
}

bool SupervisedKernel::await_failed_end() {
    if (!run_.has_shown_error_since(steady_clock::now() - kFailedEndPatience)) {
        return false;
    }
    if (!failed_end_.is_set()) {
        failed_end_.set_after(kFailedEndPatience, [this] { on_failed_end(); });
    }
    return true;
}

void SupervisedKernel::on_failed_end() {
    failed_end_.rest();
    // Else what waits for it, waits for the next interpreter.
    if (control_.waiting() > 0 && process_.info().has_value()) {
        answer_waiting_for_info();
    }
}

ControlResponder::Kernel SupervisedKernel::control_hooks() {
    return {
        .messages = [this]() -> const ServerMessages& { return process_.messages(); },
        .publish = [this](Message message) { publish(std::move(message)); },
        .repeat_busy = [this] { run_.repeat_busy(); },
        .info = [this]() -> const std::optional<nlohmann::json>& { return process_.info(); },
        .await_failed_end = [this] { return await_failed_end(); },
        .is_dead = [this] { return state_ == KernelState::kDead; },
        .interrupt = [this] { return interrupt(); },
        .restart =
            [this] {
                revival_.reset();
                process_.begin_restart();
            },
        .end_session = owner_.end_session,
        .usage = owner_.make_usage,
        .replay =
            [this](const Message& request, ReplySink& origin) { answer_replay(request, origin); },
        .debug =
            [this](const Message& request, const std::shared_ptr<ReplySink>& origin) {
                debugger_.submit(request, origin);
            },
        .log_unknown =
            [this](const std::string& type) {
                log_.line("ignored a control message of unknown type " + protocol::dump_json(type));
            }};
}

DebugRouter::Kernel SupervisedKernel::debug_hooks() {
    return {
        .messages = [this]() -> const ServerMessages& { return process_.messages(); },
        .publish = [this](Message message) { publish(std::move(message)); },
        .repeat_busy = [this] { run_.repeat_busy(); },
        .check_debugger = [this] { return check_debugger(); },
        .send = [this](const Message& request) { return process_.send(request); }};
}

bool SupervisedKernel::can_pass(bool with_run) const {
    const bool rests = is_at_rest() || (process_.is_left_dead() && is_quiet());
    const bool runs = with_run && run_.can_pass() && debugger_.size() == 0 && !files_.busy() &&
                      !process_.is_copying() && !process_.has_ended();
    const bool can_wait = waiting_.size() == 0 || (runs && waiting_.can_pass());
    return ((rests && output_.is_at_rest()) || runs) && process_.is_at_rest() && can_wait &&
           !held_ && !reviving_ && !next_ && !closed_;
}

PassedKernel SupervisedKernel::pass_on() {
    std::optional<PassedRun> run;
    std::vector<PassedRequest> waiting;
    if (run_.can_pass()) {
        run = run_.pass_on();
        waiting = waiting_.pass_on();
    }
    PassedKernel passed{
        process_.pass_on(),
        output_.text_parent(),
        begun_,
        std::move(run),
        std::move(waiting),
        output_.pass_on()};
    close();
    return passed;
}

Status SupervisedKernel::go_on(PassedKernel passed, const MakeRecorder& make_recorder) {
    begun_ = passed.begun;
    output_.set_text_parent(std::move(passed.text_parent));
    BOOST_OUTCOME_TRY(process_.go_on(std::move(passed.process), sandbox_.go_on));
    if (!is_main()) {
        watch_.count_own_cpu();
    }
    watch_.listen();
    if (passed.shown) {
        output_.go_on(std::move(*passed.shown));
    }
    if (passed.run) {
        begun_at_ = passed.run->request.started_at;
        ExecutionRecorder recorder = make_recorder(passed.run->execution->id(), {});
        BOOST_OUTCOME_TRY(run_.go_on(std::move(*passed.run), std::move(recorder)));
    }
    for (PassedRequest& one : passed.waiting) {
        ExecutionRecorder recorder = make_recorder(one.execution->id(), std::move(one.stdin_text));
        auto tracked = std::make_shared<TrackedExecution>(
            TrackedExecution{std::move(one.execution), std::move(recorder), one.timeout, {}});
        BOOST_OUTCOME_TRY(
            waiting_.push({std::move(one.message), nullptr, std::move(tracked), one.queued_at}));
    }
    return ok();
}

}  // namespace cellkeep::session
