// SPDX-License-Identifier: Apache-2.0
//
// How the parts of a SandboxedSession are connected, and what is its checkpoints' part alone.
#include "kernel-manager/session/sandboxed_session.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::session {

KeepAlive SandboxedSession::keep_alive() {
    return [this]() -> std::shared_ptr<const void> { return weak_from_this().lock(); };
}

std::unique_ptr<SupervisedKernel> SandboxedSession::make_kernel(
    KernelSpec spec, sandbox::WorkerGroup group) {
    const SessionSetup& setup = setup_;
    return std::make_unique<SupervisedKernel>(
        io_,
        SupervisedKernel::Identity{
            .session_id = setup.id,
            .spec = std::move(spec),
            .group = group,
            .start_timeout = setup.start_timeout,
            .own = {setup.options.env, setup.options.working_directory},
            .spare = setup.spare},
        kernel_sandbox(group),
        SupervisedKernel::Budget{
            .limits = setup.options.limits,
            .account = account_,
            .usage = usage_,
            .queued_bytes = queued_bytes_},
        ExecutionFiles::Places{
            .workspace = workspace_,
            .saved_texts = saved_texts_,
            .work_thread = setup.work_thread,
            .inputs_thread = setup.inputs_thread,
            .inputs = setup.inputs},
        SupervisedKernel::Audience{.activity = life_.activity(), .front_ends = output_},
        kernel_owner(group),
        kernel_log(),
        keep_alive());
}

SupervisedKernel::Sandbox SandboxedSession::kernel_sandbox(sandbox::WorkerGroup group) {
    return {
        .start =
            [this, group](const KernelStarter::Order& order, Interpreter::Events events) {
                if (group == 0) {
                    checkpoints_.on_fresh_interpreter();
                }
                return starter_.start(order, std::move(events));
            },
        .take_over =
            [this, group](WokenProcess woken, Interpreter::Events events) {
                return starter_.take_over(std::move(woken), group, std::move(events));
            },
        .go_on =
            [this](PassedInterpreter passed, Interpreter::Events events) {
                return starter_.go_on(std::move(passed), std::move(events));
            },
        .find_revival = [this, group]() -> std::optional<RestoredState> {
            return group == 0 ? find_revival() : std::nullopt;
        },
        .revive =
            [this](const RestoredState& restored) {
                boost::asio::co_spawn(io_, revive(restored.checkpoint), boost::asio::detached);
            },
        .prepare_directory =
            [this](const std::string& wanted) {
                return prepare_working_directory(workspace_, wanted);
            },
        .begin_sweep = [this, group] { return kernels_.begin_sweep(kernels_.of(group)); },
        .postpones_launch = [this, group] { return kernels_.postpones_launch(kernels_.of(group)); },
        .take_denials = [this] { watch_.take_denials(); },
        .restart_memory_peak =
            [this, group] {
                return kernels_.is_alone(kernels_.of(group)) && sandbox_.restart_memory_peak();
            },
        .memory_peak = [this]() -> std::optional<std::uint64_t> {
            const auto peak = sandbox_.memory_peak();
            return peak.has_value() ? std::optional(peak.value()) : std::nullopt;
        },
        .wake = [this] { freezer_.wake(); },
        .is_paused = [this] { return freezer_.paused(); },
        .paused_for = [this](auto now) { return freezer_.paused_for(now); },
        .halt =
            [this, group](Departure::Halted halted) {
                return group == 0 && starter_.begin_departure(std::move(halted));
            }};
}

SupervisedKernel::Owner SandboxedSession::kernel_owner(sandbox::WorkerGroup group) {
    return {
        .complete =
            [this](TrackedExecution& tracked, ExecutionResult result) {
                executions_.complete(tracked, std::move(result));
            },
        .on_left_dead = [this](const Death& death) { on_left_dead(death); },
        .note_use =
            [this] {
                if (!setup_.spare) {
                    freezer_.note_use();
                }
            },
        .review_life =
            [this] {
                auto_checkpoints_.review();
                life_.review_if_kept();
            },
        .postpones_requests =
            [this, group] {
                // What an interpreter has locked is free when nothing is left of it.
                return (group == 0 && auto_checkpoints_.is_due()) || starter_.is_departing();
            },
        .note_run =
            [this, group](std::chrono::steady_clock::duration took) {
                if (group == 0) {
                    auto_checkpoints_.note_run(took);
                }
            },
        .end_session =
            [this] {
                setup_.on_end_requested({Death::Kind::kRequested, 0});
            },
        .make_usage = [this] { return make_usage(); },
        .operator_access = [this] { return tools_.access(""); }};
}

SupervisedKernel::Log SandboxedSession::kernel_log() {
    return {
        .line =
            [this](const std::string& what) {
                if (setup_.log) {
                    setup_.log("session " + setup_.id + ": " + what);
                }
            },
        .limit =
            [this](const std::string& execution_id, const LimitHit& hit) {
                if (setup_.log_limit) {
                    setup_.log_limit(execution_id, hit);
                }
            }};
}

UsageMeter::Source SandboxedSession::usage_counters() {
    return {
        .counters = [this] { return sandbox_.counters(); },
        .cpu_counter = [this] { return sandbox_.cpu_counter(); },
        .cpu_time = [this](sandbox::WorkerGroup group) { return sandbox_.cpu_time(group); }};
}

SessionKernels::Hooks SandboxedSession::kernels_hooks() {
    return {
        .make = [this](
                    KernelSpec spec,
                    sandbox::WorkerGroup group) { return make_kernel(std::move(spec), group); },
        .wake = [this] { freezer_.wake(); },
        .begin_sweep = [this] { return sandbox_.begin_sweep(); },
        .begin_group_sweep =
            [this](sandbox::WorkerGroup group) { return sandbox_.begin_sweep(group); },
        .spares_others =
            [this] {
                // A branch's processes are in the pid namespace above, too.
                return checkpoints_.has_sleeping() || commands_.running() > 0 || branches_.any();
            }};
}

SessionCheckpoints::Hooks SandboxedSession::checkpoint_hooks() {
    return {
        .copy =
            [this](UniqueFd socket, checkpoint::OnThreads on_threads) {
                return kernels_.main().copy(std::move(socket), on_threads);
            },
        .go_back =
            [this](WokenProcess woken, std::string text) {
                return kernels_.main().go_back(std::move(woken), std::move(text));
            },
        .has_interpreter = [this] { return kernels_.main().state() != KernelState::kDead; },
        .starter = starter_,
        .give_outputs = [this](
                            const UniqueFd& out,
                            const UniqueFd& err) { return sandbox_.give_outputs(out, err); },
        .let_pass =
            [this](const std::vector<pid_t>& numbers, std::uint32_t calls) {
                if (setup_.family) {
                    setup_.family->let_pass(numbers, calls);
                }
            },
        .wake = [this] { freezer_.wake(); },
        .is_paused = [this] { return freezer_.paused(); },
        .has_room = [this] { return has_room_for_ready_fork(sandbox_.usage(), session_limits()); },
        .settled = [this] { on_settled(); },
        .hold = [this] { kernels_.main().hold(); },
        .release = [this] { kernels_.main().release(); },
        .begun = [this] { return kernels_.main().begun(); },
        .newest_execution = [this] { return executions_.find_newest(); }};
}

process::CommandTable::Hooks SandboxedSession::command_hooks() {
    return {
        .begin =
            [this](sandbox::WorkerSpec spec, WorkerStart::Done done) {
                return starter_.start_other(std::move(spec), std::move(done));
            },
        .signal = [this](
                      sandbox::WorkerId worker,
                      int number) { return sandbox_.signal(worker, number); },
        .environment =
            [this](const std::map<std::string, std::string>& own) {
                std::map<std::string, std::string> all = own;
                all.insert(setup_.options.env.begin(), setup_.options.env.end());
                return make_environment(setup_.spec, all, setup_.id, session_limits(), false);
            },
        .directory =
            [this] {
                return prepare_working_directory(workspace_, setup_.options.working_directory);
            },
        .wake = [this] { freezer_.wake(); },
        .note_use =
            [this] {
                touch();
                freezer_.note_use();
            },
        .note_end = [this] { life_.review_if_kept(); }};
}

AutoCheckpointer::Hooks SandboxedSession::auto_checkpoint_hooks() {
    return {
        .when = [this] { return setup_.options.auto_checkpoints; },
        .is_at_rest =
            [this] {
                return !closed_ && !setup_.spare && !checkpoints_.is_working() &&
                       !freezer_.paused() && kernels_.main().is_at_rest();
            },
        .make = [this] { boost::asio::co_spawn(io_, make_automatic(), boost::asio::detached); },
        .release =
            [this] {
                if (!closed_) {
                    kernels_.main().dispatch();
                    life_.review_if_kept();
                }
            }};
}

SandboxWatch::Listener SandboxedSession::watch_listener() {
    return {
        .on_sandbox_died =
            [this] {
                for (SupervisedKernel* kernel : kernels_.all()) {
                    kernel->on_sandbox_died();
                }
                commands_.on_sandbox_died();
            },
        .on_worker_exit =
            [this](const sandbox::WorkerExit& exit) {
                for (SupervisedKernel* kernel : kernels_.all()) {
                    kernel->on_worker_exit(exit);
                }
                checkpoints_.on_worker_exit(exit);
                starter_.note_exit();
                commands_.on_worker_exit(exit);
            },
        .on_swept = [this] { kernels_.on_swept(); },
        .on_group_swept = [this](sandbox::WorkerGroup group) { kernels_.on_group_swept(group); },
        .on_denied =
            [this](const sandbox::Denial& denial) {
                // By which of them is not known.
                for (SupervisedKernel* kernel : kernels_.all()) {
                    kernel->on_denied(denial);
                }
            }};
}

SessionLife::Hooks SandboxedSession::life_hooks() {
    return {
        .is_busy = [this] { return kernels_.are_busy() || commands_.running() > 0; },
        .is_dead = [this] { return kernels_.are_dead(); },
        .is_spare = [this] { return setup_.spare; },
        .end = [this](const Death& reason) { setup_.on_end_requested(reason); }};
}

bool SandboxedSession::can_freeze() const {
    const auto& controls = sandbox_.isolation().controls;
    return std::any_of(controls.begin(), controls.end(), [](const sandbox::Control& control) {
        return control.name == "freeze" && control.state == sandbox::ControlState::kApplied;
    });
}

std::chrono::seconds SandboxedSession::freeze_after() const {
    // Without a cgroup to freeze there is nothing to look for; the isolation report says why.
    return can_freeze() ? setup_.freeze_after : std::chrono::seconds(0);
}

bool SandboxedSession::is_at_work() const {
    return closed_ || setup_.spare || kernels_.are_at_work() || is_settling() ||
           auto_checkpoints_.is_due() ||
           // Its pid 1 answers for interpreters that came from here.
           branches_.any() || ports_.awaited() > 0 ||
           // What the other side of a connection says next is unknown here.
           (setup_.proxy && setup_.proxy->connections() > 0);
}

IdleFreezer::Hooks SandboxedSession::freezer_hooks() {
    return {
        .busy = [this] { return is_at_work(); },
        .settling = [this] { return is_settling(); },
        .look = [this]() -> Result<RestLook> {
            BOOST_OUTCOME_TRY(const sandbox::Usage usage, sandbox_.usage());
            BOOST_OUTCOME_TRY(const bool waiting, sandbox_.is_waiting());
            return RestLook{waiting, usage.cpu_time};
        },
        .freeze = [this]() -> Status {
            // It is not waited for: it comes when its threads next run, and thaw() takes it back
            // before as well as after.
            Status frozen = sandbox_.freeze(std::chrono::milliseconds(0));
            const bool coming = frozen.has_error() && frozen.error().code() == ErrorCode::kTimeout;
            return coming ? Status(ok()) : std::move(frozen);
        },
        .thaw = [this] { return sandbox_.thaw(); },
        .changed =
            [this](bool frozen) {
                if (setup_.log_frozen) {
                    setup_.log_frozen(frozen);
                }
                if (!frozen) {
                    auto_checkpoints_.review();  // one that waits for a session that is not paused
                }
            },
        .failed =
            [this](const Error& error) {
                setup_.log("session " + setup_.id + " is not frozen: " + error.message());
            }};
}

boost::asio::awaitable<void> SandboxedSession::settle() {
    const auto self = shared_from_this();
    touch();
    co_await auto_checkpoints_.wait();
}

boost::asio::awaitable<Result<checkpoint::CheckpointMade>> SandboxedSession::make_checkpoint(
    checkpoint::CheckpointOrder order) {
    const auto self = shared_from_this();
    touch();
    co_await auto_checkpoints_.wait();
    co_return co_await checkpoints_.make(std::move(order));
}

boost::asio::awaitable<Result<checkpoint::FileChanges>> SandboxedSession::compare_files(
    checkpoint::ComparisonOrder order) {
    const auto self = shared_from_this();
    co_await auto_checkpoints_.wait();
    co_return co_await checkpoints_.compare(std::move(order));
}

boost::asio::awaitable<Result<checkpoint::SessionFiles>> SandboxedSession::look_at_files() {
    const auto self = shared_from_this();
    co_await auto_checkpoints_.wait();
    co_return co_await checkpoints_.look_at_files();
}

boost::asio::awaitable<Result<checkpoint::MergeAnswer>> SandboxedSession::merge_files(
    checkpoint::SessionFiles theirs, checkpoint::MergeOrder order) {
    const auto self = shared_from_this();
    touch();
    co_await auto_checkpoints_.wait();
    co_return co_await checkpoints_.merge(std::move(theirs), std::move(order));
}

boost::asio::awaitable<Result<checkpoint::RolledBack>> SandboxedSession::roll_back(
    checkpoint::RollbackOrder order) {
    const auto self = shared_from_this();
    touch();
    co_await auto_checkpoints_.wait();
    co_return co_await checkpoints_.roll_back(std::move(order));
}

/// What the interpreter goes on from that has just died: its own checkpoints were wanted.
std::optional<RestoredState> SandboxedSession::find_revival() const {
    if (closed_ || setup_.options.auto_checkpoints == checkpoint::AutoCheckpoints::kOff) {
        return std::nullopt;
    }
    const auto newest = checkpoints_.find_newest();
    if (!newest) {
        return std::nullopt;
    }
    const std::string& language = setup_.options.language;
    return RestoredState{newest->id, executions_.begun_since(newest->execution, language)};
}

}  // namespace cellkeep::session
