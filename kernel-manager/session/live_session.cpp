// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/live_session.hpp"

#include "protocol/limits.hpp"
#include "protocol/support/syscall.hpp"

#include <fcntl.h>

#include <algorithm>
#include <utility>

namespace cellkeep::session {

using nlohmann::json;
using std::chrono::steady_clock;
using std::chrono::system_clock;

std::shared_ptr<LiveSession> LiveSession::create(
    boost::asio::io_context& io, Setup setup, sandbox::Sandbox sandbox) {
    return std::shared_ptr<LiveSession>(new LiveSession(io, std::move(setup), std::move(sandbox)));
}

LiveSession::LiveSession(boost::asio::io_context& io, Setup setup, sandbox::Sandbox sandbox)
    : io_(io),
      setup_(std::move(setup)),
      sandbox_(std::move(sandbox)),
      workspace_(sandbox_),
      account_(session_limits().consecutive_failures.value_or(0)),
      output_(limits::kJournalMessagesMax, limits::kJournalBytesMax),
      usage_(
          {.counters = [this] { return sandbox_.counters(); },
           .cpu_time = [this](sandbox::WorkerGroup group) { return sandbox_.cpu_time(group); }},
          account_,
          session_limits(),
          kernel_log().line),
      starter_(
          io,
          sandbox_,
          workspace_,
          session_limits(),
          setup_.id,
          [this]() -> std::shared_ptr<const void> { return weak_from_this().lock(); }),
      main_(make_kernel(setup_.spec, 0)),
      sandbox_events_(io),
      inbox_([this] { return sandbox_.next_event(); }),
      created_at_(system_clock::now()),
      created_steady_(steady_clock::now()),
      activity_(created_steady_),
      clients_([this] { watch_life(); }),
      life_timer_(io),
      freezer_(io, freeze_after(), freezer_hooks()),
      usage_report_(created_steady_) {}

LiveSession::~LiveSession() {
    close({Death::Kind::kRequested, 0});
}

boost::asio::awaitable<Status> LiveSession::start() {
    const auto self = shared_from_this();
    BOOST_OUTCOME_CO_TRY(write_files(std::exchange(setup_.options.files, {})));
    BOOST_OUTCOME_CO_TRY(with_context(
        workspace_.make_directory(setup_.options.working_directory), "working_directory"));

    // A duplicate, because the sandbox keeps and closes its own.
    UniqueFd events(::fcntl(sandbox_.event_fd(), F_DUPFD_CLOEXEC, 0));
    if (!events) {
        co_return Error::from_errno(errno, "fcntl(F_DUPFD_CLOEXEC)");
    }
    boost::system::error_code error;
    sandbox_events_.assign(events.get(), error);
    if (error) {
        co_return Error(ErrorCode::kSystem, "watch the sandbox: " + error.message());
    }
    (void)events.release();
    watch_sandbox();
    account_.hand_out(usage_.counters());
    BOOST_OUTCOME_CO_TRY(main_->launch());
    Status ready = co_await main_->wait_ready();
    if (ready.has_value()) {
        account_.hand_out(usage_.counters());
        // Only now: until it is ready nobody could remove it.
        touch();
        watch_life();
    }
    co_return ready;
}

SessionInfo LiveSession::info() const {
    SessionInfo info;
    info.id = setup_.id;
    info.kernel_id = setup_.kernel_id;
    info.language = setup_.options.language;
    info.languages = list_languages();
    if (const auto& catalog = setup_.catalog) {
        info.not_offered = {catalog, &catalog->not_offered()};
    }
    info.state = main_->state();
    info.frozen = freezer_.frozen();
    info.death = main_->death();
    info.limits = session_limits();
    if (setup_.proxy) {
        info.network = setup_.proxy->policy();
        info.traffic = setup_.proxy->traffic();
    }
    info.environment = setup_.spec.environment;
    info.isolation = sandbox_.isolation();
    info.metadata = setup_.options.metadata;
    info.owner = setup_.options.owner;
    info.created_at = created_at_;
    info.last_activity = created_at_ + std::chrono::duration_cast<system_clock::duration>(
                                           activity_.last() - created_steady_);
    info.executions = executions_;
    for (const LanguageInfo& language : info.languages) {
        info.restarts += language.restarts;
    }
    info.connections = clients_.count();
    info.connection_file = connection_file_;
    info.output_dropped = output_.journal().dropped();
    info.used = account_.used();
    info.circuit = account_.circuit(steady_clock::now());
    return info;
}

void LiveSession::submit(protocol::Message request, std::shared_ptr<ReplySink> origin) {
    if (closed_) {
        main_->refuse(
            std::move(request), std::move(origin), "SessionClosed", "The session has ended.");
        return;
    }
    const std::string& type = request.header().msg_type;
    activity_.note_request(type, steady_clock::now());
    if (request.channel() == protocol::Channel::kStdin) {
        main_->submit_input_reply(request);
    } else if (
        request.channel() == protocol::Channel::kControl || type == "kernel_info_request" ||
        type == "shutdown_request") {
        // What a kernel is, is known: a client that comes back to a busy one need not wait. A
        // shutdown on shell is deprecated (specification 5.4) and means the same.
        main_->submit_control(std::move(request), std::move(origin));
    } else {
        main_->submit_shell(std::move(request), std::move(origin));
    }
}

void LiveSession::unsubscribe(OutputObserver* observer) {
    output_.unsubscribe(observer);
    resume_output();
}

void LiveSession::resume_output() {
    if (!output_.is_congested()) {
        main_->resume_reading();
    }
}

json LiveSession::make_usage() {
    auto usage = sandbox_.usage();
    return usage_report_.make(
        session_limits(),
        usage.has_value() ? std::optional<sandbox::Usage>(usage.value()) : std::nullopt,
        steady_clock::now());
}

Result<sandbox::Workspace> LiveSession::workspace() {
    if (closed_) {
        return Error(ErrorCode::kConflict, "files: the session has ended");
    }
    return workspace_;
}

}  // namespace cellkeep::session
