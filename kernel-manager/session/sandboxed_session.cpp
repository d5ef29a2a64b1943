// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/sandboxed_session.hpp"

#include "kernel-manager/execution/mounted_inputs.hpp"
#include "kernel-manager/session/network/network_access.hpp"
#include "kernel-manager/session/session_update.hpp"
#include "protocol/limits.hpp"
#include "protocol/support/run_elsewhere.hpp"

#include <functional>
#include <optional>
#include <utility>

namespace cellkeep::session {

using nlohmann::json;
using std::chrono::steady_clock;
using std::chrono::system_clock;

std::shared_ptr<SandboxedSession> SandboxedSession::create(
    boost::asio::io_context& io, Setup setup, sandbox::Sandbox sandbox) {
    return std::shared_ptr<SandboxedSession>(
        new SandboxedSession(io, std::move(setup), std::move(sandbox)));
}

SandboxedSession::SandboxedSession(
    boost::asio::io_context& io, Setup setup, sandbox::Sandbox sandbox)
    : io_(io),
      setup_(std::move(setup)),
      sandbox_(std::move(sandbox)),
      workspace_(sandbox_),
      account_(session_limits().consecutive_failures.value_or(0)),
      tools_(setup_, workspace_),
      output_(limits::kJournalMessagesMax, limits::kJournalBytesMax),
      usage_(usage_counters(), account_, session_limits(), kernel_log().line),
      usage_report_(steady_clock::now()),
      life_(io, setup_.options, life_hooks(), keep_alive()),
      starter_(
          io, sandbox_, workspace_, setup_, [this] { on_departed(); }, keep_alive()),
      kernels_(setup_, kernels_hooks()),
      executions_(io, setup_, kernels_, account_, tools_, [this] { touch(); }),
      checkpoints_(io, checkpoint_hooks(), find_places(setup_, workspace_), keep_alive()),
      branches_(
          io, {setup_, sandbox_, checkpoints_}, [this] { return settle(); }, keep_alive()),
      commands_(io, command_hooks(), keep_alive()),
      auto_checkpoints_(io, auto_checkpoint_hooks(), keep_alive()),
      watch_(
          io, [this] { return sandbox_.next_event(); }, watch_listener(), keep_alive()),
      freezer_(io, freeze_after(), freezer_hooks()),
      ports_(
          sandbox_,
          {.has_ended = [this] { return closed_; },
           .use = [this] { note_visit(); },
           .answered = [this] { freezer_.note_use(); }}) {}

SandboxedSession::~SandboxedSession() {
    close({Death::Kind::kRequested, 0});
}

boost::asio::awaitable<Status> SandboxedSession::place_files() {
    auto prepared = prepare_start_files(
        workspace_, std::exchange(setup_.options.files, {}), setup_.mounted, setup_.inputs);
    if (prepared.has_error()) {
        co_return prepared.error();
    }
    const auto writing = prepared.value();
    Status written = ok();
    if (writing->bytes() <= kFilesWrittenAtOnceBytesMax) {
        written = writing->run();
    } else {
        const auto thread = setup_.work_thread;
        std::function<std::optional<Status>()> slice = [writing]() -> std::optional<Status> {
            return writing->advance() == WorkThread::Slice::kMore
                       ? std::nullopt
                       : std::optional(writing->status());
        };
        written = co_await run_elsewhere<Status>(io_, *thread, std::move(slice));
    }
    BOOST_OUTCOME_CO_TRY(std::move(written));
    if (closed_) {
        co_return Error(ErrorCode::kConflict, "files: the session has ended");
    }
    co_return with_context(
        workspace_.make_directory(setup_.options.working_directory), "working_directory");
}

boost::asio::awaitable<Status> SandboxedSession::start() {
    const auto self = shared_from_this();
    Status placed = co_await place_files();
    BOOST_OUTCOME_CO_TRY(std::move(placed));
    BOOST_OUTCOME_CO_TRY(watch_.begin(sandbox_.event_fd()));
    account_.hand_out(usage_.cpu_time());
    Status launched = co_await launch();
    BOOST_OUTCOME_CO_TRY(std::move(launched));
    Status ready = co_await kernels_.main().wait_ready();
    if (ready.has_value()) {
        account_.hand_out(usage_.cpu_time());
        // Only now: until it is ready no client could remove it.
        touch();
        life_.review();
    }
    co_return ready;
}

boost::asio::awaitable<Status> SandboxedSession::launch() {
    if (!branches_.is_awaited()) {
        co_return kernels_.main().launch();
    }
    auto arrived = co_await branches_.arrive();
    BOOST_OUTCOME_CO_TRY(auto woken, std::move(arrived));
    if (closed_) {
        co_return Error(ErrorCode::kConflict, "branch: the session has ended");
    }
    co_return kernels_.main().launch_from(std::move(woken), branches_.describe_origin());
}

boost::asio::awaitable<Status> SandboxedSession::adopt(
    std::string kernel_id, SessionOptions options) {
    const auto self = shared_from_this();
    if (closed_ || !kernels_.main().is_ready()) {
        co_return Error(ErrorCode::kConflict, "hand out: the spare is not ready");
    }
    setup_.spare = false;
    setup_.kernel_id = std::move(kernel_id);
    setup_.set_options(std::move(options));
    life_.begin_anew();
    account_ = SessionAccount(session_limits().consecutive_failures.value_or(0));
    account_.hand_out(usage_.cpu_time());
    Status placed = co_await place_files();
    BOOST_OUTCOME_CO_TRY(std::move(placed));
    if (!kernels_.main().is_ready()) {
        co_return Error(ErrorCode::kConflict, "hand out: the spare has ended");
    }
    OwnStart own{setup_.options.env, setup_.options.working_directory};
    Status adopted = co_await kernels_.main().adopt(std::move(own));
    BOOST_OUTCOME_CO_TRY(std::move(adopted));
    freezer_.note_use();
    life_.review();
    co_return ok();
}

SessionInfo SandboxedSession::info() const {
    SessionInfo info;
    info.id = setup_.id;
    info.kernel_id = setup_.kernel_id;
    info.language = setup_.options.language;
    info.languages = kernels_.list();
    if (const auto& catalog = setup_.catalog) {
        info.not_offered = {catalog, &catalog->not_offered()};
    }
    info.state = kernels_.main().state();
    info.frozen = freezer_.frozen();
    info.paused = freezer_.paused();
    info.death = kernels_.main().death();
    info.limits = session_limits();
    if (setup_.proxy) {
        info.network = setup_.proxy->policy();
        info.traffic = setup_.proxy->traffic();
    }
    info.environment = setup_.spec.environment;
    info.isolation = sandbox_.isolation();
    info.auto_checkpoints = setup_.options.auto_checkpoints;
    info.branches = setup_.options.branches;
    info.metadata = setup_.options.metadata;
    info.branch = setup_.branch;
    info.owner = setup_.options.owner;
    info.created_at = life_.created_at();
    info.last_activity = life_.last_activity();
    info.executions = executions_.count();
    for (const LanguageInfo& language : info.languages) {
        info.restarts += language.restarts;
    }
    info.connections = life_.clients().count();
    info.connection_file = connection_file_;
    info.output_dropped = output_.journal().dropped();
    info.used = account_.used();
    info.circuit = account_.circuit(steady_clock::now());
    return info;
}

void SandboxedSession::submit(protocol::Message request, std::shared_ptr<ReplySink> origin) {
    if (closed_) {
        kernels_.main().refuse(
            std::move(request), std::move(origin), "SessionClosed", "The session has ended.");
        return;
    }
    const std::string& type = request.header().msg_type;
    life_.activity().note_request(type, steady_clock::now());
    if (request.channel() == protocol::Channel::kStdin) {
        kernels_.main().submit_input_reply(request);
    } else if (
        request.channel() == protocol::Channel::kControl || type == "kernel_info_request" ||
        type == "shutdown_request") {
        // What a kernel is, is known: a client that comes back to a busy one need not wait. A
        // shutdown on shell is deprecated (specification 5.4) and means the same.
        kernels_.main().submit_control(std::move(request), std::move(origin));
    } else {
        kernels_.main().submit_shell(std::move(request), std::move(origin));
    }
}

void SandboxedSession::unsubscribe(OutputObserver* observer) {
    output_.unsubscribe(observer);
    resume_output();
}

void SandboxedSession::resume_output() {
    if (!output_.is_congested()) {
        kernels_.main().resume_reading();
    }
}

json SandboxedSession::make_usage() {
    auto usage = sandbox_.usage();
    return usage_report_.make(
        session_limits(),
        usage.has_value() ? std::optional<sandbox::Usage>(usage.value()) : std::nullopt,
        steady_clock::now());
}

Status SandboxedSession::freeze(std::function<void()> woken) {
    if (closed_) {
        return Error(ErrorCode::kConflict, "freeze: the session has ended");
    }
    if (!can_freeze()) {
        return Error(
            ErrorCode::kUnavailable,
            "freeze: this server cannot freeze sessions",
            "`cellkeep doctor` says what is missing.");
    }
    return freezer_.freeze(std::move(woken));
}

Result<sandbox::Usage> SandboxedSession::usage() const {
    if (closed_) {
        return Error(ErrorCode::kConflict, "usage: the session has ended");
    }
    return sandbox_.usage();
}

Result<sandbox::Workspace> SandboxedSession::workspace() {
    if (closed_) {
        return Error(ErrorCode::kConflict, "files: the session has ended");
    }
    return workspace_;
}

Result<sandbox::Workspace::OpenedFile> SandboxedSession::open_input(const std::string& path) const {
    const auto mounted = setup_.mounted.find(path);
    if (mounted == setup_.mounted.end() || !setup_.inputs) {
        return Session::open_input(path);
    }
    return open_mounted(*setup_.inputs, mounted->second);
}

Result<std::shared_ptr<Execution>> SandboxedSession::begin(ExecutionRequest request) {
    if (closed_) {
        return Error(ErrorCode::kConflict, "execute: the session has ended");
    }
    return executions_.begin(std::move(request));
}

Result<std::vector<std::shared_ptr<Execution>>> SandboxedSession::begin_all(
    std::vector<ExecutionRequest> requests) {
    if (closed_) {
        return Error(ErrorCode::kConflict, "execute: the session has ended");
    }
    return executions_.begin_all(std::move(requests));
}

Status SandboxedSession::interrupt_language(const std::string& language) {
    BOOST_OUTCOME_TRY(SupervisedKernel * kernel, kernels_.find_used(language));
    return kernel->interrupt();
}

boost::asio::awaitable<Status> SandboxedSession::restart() {
    co_return co_await restart_language(kernels_.main().spec().language);
}

boost::asio::awaitable<Status> SandboxedSession::restart_language(const std::string& language) {
    const auto self = shared_from_this();
    if (closed_) {
        co_return Error(ErrorCode::kConflict, "restart: the session has ended");
    }
    BOOST_OUTCOME_CO_TRY(SupervisedKernel * kernel, kernels_.find_used(language));
    touch();
    co_return co_await kernel->restart();
}

Status SandboxedSession::update(const SessionUpdate& wanted) {
    if (closed_) {
        return Error(ErrorCode::kConflict, "update: the session has ended");
    }
    if (wanted.limits) {
        BOOST_OUTCOME_TRY(check_lowering(session_limits(), *wanted.limits));
    }
    const auto before = setup_.proxy ? setup_.proxy->policy() : egress::NetworkPolicy();
    if (wanted.network) {
        BOOST_OUTCOME_TRY(
            update_network(setup_.egress_service.get(), setup_.proxy.get(), *wanted.network));
    }
    if (wanted.limits) {
        Status lowered = apply_limits(*wanted.limits);
        if (lowered.has_error()) {
            // All or nothing. What was in force a moment ago is allowed.
            (void)update_network(setup_.egress_service.get(), setup_.proxy.get(), before)
                .has_value();
            return lowered;
        }
    }
    if (wanted.metadata) {
        setup_.options.metadata = *wanted.metadata;
    }
    touch();
    life_.review();
    return ok();
}

Status SandboxedSession::apply_limits(const SessionLimits& wanted) {
    BOOST_OUTCOME_TRY(
        lower_sandbox_limits(session_limits(), wanted, [this](const sandbox::LimitsChange& change) {
            return sandbox_.change_limits(change);
        }));
    setup_.options.limits = wanted;
    return ok();
}

boost::asio::awaitable<void> SandboxedSession::make_automatic() {
    const auto self = shared_from_this();
    checkpoint::CheckpointOrder order;
    order.automatic = true;
    const auto made = co_await checkpoints_.make(std::move(order));
    auto_checkpoints_.finish();
    const bool busy = made.has_error() && made.error().code() == ErrorCode::kConflict;
    if (closed_ || busy || (made.has_value() && !made.value().refused) || auto_refusal_logged_) {
        co_return;
    }
    auto_refusal_logged_ = true;
    kernel_log().line(
        "makes no checkpoint by itself: " +
        (made.has_error() ? made.error().message()
                          : "the interpreter cannot be copied (" +
                                std::string(to_string(made.value().refused->why)) + ")"));
}

boost::asio::awaitable<void> SandboxedSession::revive(std::string checkpoint) {
    const auto self = shared_from_this();
    freezer_.wake();
    std::string id = checkpoint;
    auto woken = co_await checkpoints_.revive(std::move(id));
    const bool goes_on = woken.has_value();
    if (closed_) {
        co_return;
    }
    kernels_.main().on_revived(std::move(woken));
    if (goes_on) {
        checkpoints_.go_on_from(checkpoint);
    }
}

void SandboxedSession::on_left_dead(const Death& death) {
    life_.review();
    if (setup_.spare) {
        setup_.on_end_requested(death);
    }
}

void SandboxedSession::end_conversation(const Death& reason) {
    if (std::exchange(closed_, true)) {
        return;
    }
    life_.stop();
    freezer_.stop();
    if (setup_.proxy) {
        setup_.proxy->close();
    }
    kernels_.close();
    starter_.close();
    auto_checkpoints_.stop();
    checkpoints_.close();
    commands_.close();
    watch_.close();
    if (!weak_from_this().expired()) {
        kernels_.end(reason);
    }
    kernels_.main().mark_dead();
}

void SandboxedSession::close(Death reason) {
    end_conversation(reason);
    branches_.forget_sandbox();
    // A failure leaves nothing running or is tried again by the Service (remove_leftovers).
    (void)sandbox_.destroy();
}

}  // namespace cellkeep::session
