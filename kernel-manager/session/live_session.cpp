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
    : shared_(io, std::move(setup), std::move(sandbox)),
      starter_(io, shared_.sandbox, shared_.workspace, shared_.limits(), shared_.setup.id),
      main_(make_kernel(shared_.setup.spec, 0)),
      sandbox_events_(io),
      inbox_([this] { return shared_.sandbox.next_event(); }),
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
    BOOST_OUTCOME_CO_TRY(write_files(std::exchange(shared_.setup.options.files, {})));
    BOOST_OUTCOME_CO_TRY(with_context(
        shared_.workspace.make_directory(shared_.setup.options.working_directory),
        "working_directory"));

    // A duplicate, because the sandbox keeps and closes its own.
    UniqueFd events(::fcntl(shared_.sandbox.event_fd(), F_DUPFD_CLOEXEC, 0));
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
    shared_.account.hand_out(shared_.usage.counters());
    BOOST_OUTCOME_CO_TRY(main_->launch());
    Status ready = co_await main_->wait_ready();
    if (ready.has_value()) {
        shared_.account.hand_out(shared_.usage.counters());
        // Only now: until it is ready nobody could remove it.
        touch();
        watch_life();
    }
    co_return ready;
}

SessionInfo LiveSession::info() const {
    SessionInfo info;
    info.id = shared_.setup.id;
    info.kernel_id = shared_.setup.kernel_id;
    info.language = shared_.setup.options.language;
    info.languages = list_languages();
    if (const auto& catalog = shared_.setup.catalog) {
        info.not_offered = {catalog, &catalog->not_offered()};
    }
    info.state = main_->state();
    info.frozen = freezer_.frozen();
    info.death = main_->death();
    info.limits = shared_.limits();
    if (shared_.setup.proxy) {
        info.network = shared_.setup.proxy->policy();
        info.traffic = shared_.setup.proxy->traffic();
    }
    info.environment = shared_.setup.spec.environment;
    info.isolation = shared_.sandbox.isolation();
    info.metadata = shared_.setup.options.metadata;
    info.owner = shared_.setup.options.owner;
    info.created_at = created_at_;
    info.last_activity = created_at_ + std::chrono::duration_cast<system_clock::duration>(
                                           activity_.last() - created_steady_);
    info.executions = executions_;
    for (const LanguageInfo& language : info.languages) {
        info.restarts += language.restarts;
    }
    info.connections = clients_.count();
    info.connection_file = connection_file_;
    info.output_dropped = shared_.output.journal().dropped();
    info.used = shared_.account.used();
    info.circuit = shared_.account.circuit(steady_clock::now());
    return info;
}

void LiveSession::submit(protocol::Message request, std::shared_ptr<ReplySink> origin) {
    if (shared_.closed) {
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
    shared_.output.unsubscribe(observer);
    resume_output();
}

void LiveSession::resume_output() {
    if (!shared_.output.is_congested()) {
        main_->resume_reading();
    }
}

json LiveSession::make_usage() {
    auto usage = shared_.sandbox.usage();
    return usage_report_.make(
        shared_.limits(),
        usage.has_value() ? std::optional<sandbox::Usage>(usage.value()) : std::nullopt,
        steady_clock::now());
}

Result<sandbox::Workspace> LiveSession::workspace() {
    if (shared_.closed) {
        return Error(ErrorCode::kConflict, "files: the session has ended");
    }
    return shared_.workspace;
}

}  // namespace cellkeep::session
