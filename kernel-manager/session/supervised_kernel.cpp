// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/supervised_kernel.hpp"

#include "kernel-manager/output/output_replay.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

namespace cellkeep::session {

using protocol::Channel;
using protocol::Message;
using std::chrono::steady_clock;

SupervisedKernel::SupervisedKernel(
    boost::asio::io_context& io,
    Identity identity,
    Sandbox sandbox,
    Budget budget,
    ExecutionFiles::Places files,
    Audience audience,
    Owner owner,
    Log log,
    KeepAlive keep_session)
    : io_(io),
      identity_(std::move(identity)),
      sandbox_(std::move(sandbox)),
      owner_(std::move(owner)),
      log_(std::move(log)),
      keep_session_(std::move(keep_session)),
      limits_(budget.limits),
      account_(budget.account),
      front_ends_(audience.front_ends),
      process_(
          io,
          process_settings(),
          budget.limits,
          process_sandbox(budget.usage),
          process_listener(),
          keep_session_),
      output_(
          io,
          is_main() ? &front_ends_ : nullptr,
          files.workspace,
          output_hooks(audience.activity),
          keep_session_),
      watch_(
          io,
          budget.limits,
          budget.account,
          run_counters(budget.usage),
          watch_owner(),
          keep_session_),
      files_(io, std::move(files), budget.account, files_owner(), keep_session_),
      run_(
          {.process = process_, .output = output_, .watch = watch_, .files = files_},
          budget.limits,
          run_owner(audience.activity),
          keep_session_),
      waiting_(io, budget.queued_bytes, dispatcher_kernel(), keep_session_),
      debugger_(debug_hooks()),
      control_(control_hooks()),
      failed_end_(io, keep_session_) {}

// --- life

boost::asio::awaitable<Status> SupervisedKernel::wait_ready() {
    const auto session = keep_session_();
    Status ready = co_await process_.wait_ready();
    if (ready.has_value()) {
        watch_.listen();
    }
    co_return ready;
}

boost::asio::awaitable<Status> SupervisedKernel::adopt(OwnStart own) {
    const auto session = keep_session_();
    watch_.start_over();
    identity_.own = std::move(own);
    nlohmann::json content;
    if (!identity_.own.env.empty() || !identity_.own.working_directory.empty()) {
        content = {
            {"env", identity_.own.env},
            {"working_directory", sandbox_.prepare_directory(identity_.own.working_directory)}};
    }
    co_return co_await process_.adopt(std::move(content));
}

boost::asio::awaitable<CopyRequest::Answer> SupervisedKernel::copy(
    UniqueFd socket, checkpoint::OnThreads on_threads) {
    const auto session = keep_session_();
    if (!is_at_rest() || (waiting_.size() > 0 && !held_)) {
        co_return Error(
            ErrorCode::kConflict,
            "checkpoint: the interpreter is not at the end of a cell",
            "Wait until nothing runs or waits, or interrupt it.");
    }
    sandbox_.wake();
    auto answer = co_await process_.copy(std::move(socket), on_threads);
    dispatch();  // what has come meanwhile
    owner_.review_life();
    co_return answer;
}

boost::asio::awaitable<Status> SupervisedKernel::go_back(WokenProcess woken, std::string text) {
    const auto session = keep_session_();
    revival_.reset();
    const bool waits = woken.runs_by_itself;
    next_ = Next{std::move(woken), "rolled_back", std::move(text)};
    // g++ 12 destroys twice what a conditional co_await gives.
    auto replaced = waits ? process_.restart() : process_.replace();
    Status done = co_await std::move(replaced);
    next_.reset();
    co_return done;
}

/// Instead of a launch. False: there is nothing to go on from.
bool SupervisedKernel::begin_revival() {
    if (reviving_) {
        return true;
    }
    if (closed_ || next_ || !revival_) {
        return false;
    }
    reviving_ = true;
    sandbox_.revive(*revival_);
    return true;
}

void SupervisedKernel::on_revived(Result<WokenProcess> woken) {
    reviving_ = false;
    if (closed_) {
        return;
    }
    // A client may have asked for a restart meanwhile: then a fresh one follows.
    if (const auto revival = std::exchange(revival_, std::nullopt); revival && !next_) {
        if (woken.has_value()) {
            next_ = Next{
                std::move(woken).value(),
                "restored",
                "The kernel goes on from checkpoint " + revival->checkpoint + "."};
        } else {
            publish(process_.messages().stream(
                "stderr",
                "The checkpoint cannot be gone on from. The interpreter begins anew; its variables "
                "are gone.\n",
                output_.text_parent()));
        }
    }
    launch_or_die();
}

void SupervisedKernel::release() {
    held_ = false;
    if (!closed_) {
        dispatch();
        owner_.review_life();
    }
}

Result<std::unique_ptr<Interpreter>> SupervisedKernel::start_process(Interpreter::Events events) {
    revival_.reset();
    if (auto next = std::exchange(next_, std::nullopt)) {
        // Clients see a kernel that begins, and why.
        publish(process_.messages().status("starting", nullptr, next->reason, next->text));
        return sandbox_.take_over(std::move(next->process), std::move(events));
    }
    return sandbox_.start(
        {.spec = identity_.spec,
         .own = identity_.own,
         .group = identity_.group,
         .spare = process_.is_spare()},
        std::move(events));
}

void SupervisedKernel::close() {
    closed_ = true;
    process_.close();
    files_.close();
}

void SupervisedKernel::end(const Death& reason) {
    process_.end(reason);
    const std::string text = process_.describe_end(reason, Aftermath::kEnded);
    control_.refuse_waiting(text);
    publish(process_.messages().status("dead", nullptr, to_string(reason), text));
    mark_dead();
}

void SupervisedKernel::change(KernelEvent event) {
    if (const auto next = next_state(state_, event)) {
        state_ = *next;
    }
}

// --- what clients ask

void SupervisedKernel::submit_control(Message request, std::shared_ptr<ReplySink> origin) {
    boost::asio::post(
        io_,
        [this,
         session = keep_session_(),
         request = std::move(request),
         origin = std::move(origin)] { control_.submit(request, origin); });
}

void SupervisedKernel::submit_shell(Message request, std::shared_ptr<ReplySink> origin) {
    if (state_ == KernelState::kDead) {
        refuse(
            std::move(request),
            std::move(origin),
            "KernelDead",
            death() ? process_.describe_end(*death(), Aftermath::kLeftDead)
                    : "The interpreter is gone.");
        return;
    }
    const bool runs_code = request.header().msg_type == "execute_request";
    if (const auto refused =
            runs_code ? account_.find_exhausted(limits_) : std::optional<LimitRefusal>()) {
        refuse(
            std::move(request),
            std::move(origin),
            "BudgetExhausted",
            refused->message + " " + refused->hint);
        return;
    }
    const Message copy = request;
    auto pushed = enqueue({std::move(request), origin, nullptr, steady_clock::now()});
    if (pushed.has_error()) {
        refuse(copy, std::move(origin), "QueueFull", pushed.error().message());
        return;
    }
    if (runs_code) {
        account_.accept_client();
    }
    dispatch();
}

void SupervisedKernel::refuse(
    Message request, std::shared_ptr<ReplySink> origin, std::string ename, std::string evalue) {
    waiting_.refuse(std::move(request), std::move(origin), std::move(ename), std::move(evalue));
}

Status SupervisedKernel::check_alive() const {
    if (state_ != KernelState::kDead) {
        return ok();
    }
    return Error(
        ErrorCode::kConflict,
        "execute: " + (death() ? describe(*death()) : std::string("the interpreter is gone")),
        is_main() ? "Restart the session." : "Restart the session's " + spec().language + ".");
}

Status SupervisedKernel::interrupt() {
    if (closed_ || !process_.has_process()) {
        return Error(ErrorCode::kConflict, "interrupt: there is no interpreter to interrupt");
    }
    return run_.interrupt();
}

std::optional<Status> SupervisedKernel::interrupt_execution(
    const std::shared_ptr<Execution>& execution) {
    if (run_.is_of(execution)) {
        return interrupt();
    }
    if (!waiting_.cancel(*execution)) {
        return std::nullopt;
    }
    owner_.review_life();
    return ok();
}

// --- what its process says, and what becomes of it

void SupervisedKernel::on_message(Message message) {
    watch_.count_output(message.frame().size());
    if (process_.is_killed_for(Death::Kind::kOutputLimit)) {
        return;  // it is being killed for what it says
    }
    if (process_.take(message)) {
        return;
    }
    switch (message.channel()) {
        case Channel::kIopub:
            run_.on_iopub(std::move(message));
            return;
        case Channel::kShell:
            run_.on_reply(message);
            return;
        case Channel::kStdin:
            run_.on_question(message);
            return;
        case Channel::kControl:
            debugger_.on_reply(message);
            return;
    }
}

void SupervisedKernel::on_ready() {
    if (!is_main()) {
        watch_.count_own_cpu();  // its group is there since its first process is
    }
    answer_waiting_for_info();
    dispatch();
    if (!process_.is_spare()) {
        owner_.note_use();
    }
    owner_.review_life();  // what kept the session may have ended with its last interpreter
}

void SupervisedKernel::on_worker_exit(const sandbox::WorkerExit& exit) {
    if (process_.is_of(exit.id)) {  // not of an earlier interpreter
        const bool asked_for = process_.is_killed_for(Death::Kind::kRequested);
        revival_ = closed_ || asked_for ? std::nullopt : sandbox_.find_revival();
        run_.on_kernel_exit();
        process_.on_exit(exit, run_.cut());
    }
}

std::optional<Message> SupervisedKernel::on_lost(const ProcessSupervisor::Loss& loss) {
    run_.on_kernel_lost();
    debugger_.fail_all(loss.text);
    const bool requested = loss.death.kind == Death::Kind::kRequested;
    if (closed_ || !loss.restarts) {
        revival_.reset();
    }
    std::optional<Message> running = run_.fail(loss.death, loss.text);
    if (!running.has_value() && is_news(loss.death) && !process_.is_spare() && !loss.informed) {
        publish(process_.messages().stream("stderr", loss.text + "\n", output_.text_parent()));
    }
    if (closed_ || !loss.restarts || (!requested && !loss.informed)) {
        waiting_.fail_all(loss.death, loss.text);
    }
    return running;
}

// --- what the server answers itself

void SupervisedKernel::answer_waiting_for_info() {
    const auto session = keep_session_();  // an answer may let go of the session
    control_.answer_waiting();
}

Status SupervisedKernel::check_debugger() {
    if (!process_.has_process()) {
        return Error(ErrorCode::kUnavailable, "The interpreter is gone.");
    }
    const auto& info = process_.info();
    if (!info.has_value() || info->value("debugger", nlohmann::json(false)) != true) {
        return Error(ErrorCode::kUnavailable, "This kernel has no debugger.");
    }
    sandbox_.wake();
    return ok();
}

void SupervisedKernel::answer_replay(const Message& request, ReplySink& origin) const {
    const ServerMessages& messages = process_.messages();
    const auto asked = parse_replay_question(request);
    if (asked.has_error()) {
        origin.deliver(messages.error_reply(request, "ValueError", asked.error().message()));
        return;
    }
    const std::string running = run_.is_running() ? run_.message()->header().msg_id : std::string();
    const auto place = [&](std::string_view msg_id) {
        if (run_.is_running() && running == msg_id) {
            return RequestPlace::kRunning;
        }
        return waiting_.holds(msg_id) ? RequestPlace::kWaiting : RequestPlace::kNotHere;
    };
    const Replay replay = make_replay(asked.value(), front_ends_.journal(), place);
    origin.deliver(messages.reply_with_text(request, replay.content));
    const auto& requests = asked.value().requests;
    const std::optional<Message> open = question();
    if (replay.complete && open.has_value() &&
        std::find(requests.begin(), requests.end(), running) != requests.end()) {
        // The client that was asked first may be gone: this one has taken its place.
        origin.deliver(*open);
    }
}

// --- how it is

bool SupervisedKernel::is_ready() const {
    return process_.has_process() && !process_.has_ended() && state_ == KernelState::kIdle;
}

bool SupervisedKernel::is_at_rest() const {
    return is_ready() && process_.takes_requests() && is_quiet();
}

bool SupervisedKernel::is_at_work() const {
    return !process_.has_process() || state_ != KernelState::kIdle || is_busy() ||
           process_.is_near_end() || process_.is_adopting() || process_.is_copying() ||
           files_.busy() || debugger_.size() > 0 || held_;
}

}  // namespace cellkeep::session
