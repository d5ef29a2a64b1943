// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/serve/server.hpp"

#include "kernel-manager/cli/log.hpp"
#include "kernel-manager/cli/run/console.hpp"
#include "kernel-manager/cli/serve/obstacles.hpp"
#include "kernel-manager/cli/serve/request_log.hpp"
#include "kernel-manager/cli/serve/serve_banner.hpp"
#include "kernel-manager/cli/upgrade/program_check.hpp"
#include "kernel-manager/cli/upgrade/service_notice.hpp"
#include "kernel-manager/cli/upgrade/upgrade_news.hpp"
#include "kernel-manager/cli/version.hpp"
#include "kernel-manager/session/passing/passed_setup.hpp"
#include "protocol/support/syscall.hpp"
#include "protocol/support/time.hpp"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <string_view>
#include <utility>

namespace cellkeep::cli {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::milliseconds kStopPatience{5000};
/// For what the parts still have to do after the last connection closed.
constexpr std::chrono::milliseconds kServeLastWork{2000};

/// Sessions can begin. Once.
Status tell_ready(const ServePlan& plan) {
    if (!plan.ready_fd) {
        return ok();
    }
    const UniqueFd ready(*plan.ready_fd);
    return with_context(write_all(ready.get(), "READY\n"), "--ready-fd");
}

/// What a build beside this process says.
void log_preparing(std::string_view line) {
    constexpr std::string_view kSpeaker = "cellkeep: ";
    line.remove_prefix(line.starts_with(kSpeaker) ? kSpeaker.size() : 0);
    log_event(LogLevel::kInfo, "preparing", {{"message", line}});
}

/// Gives the service what the image holds when that is made. If it cannot be made, the service goes
/// on with what it has; give_up() is called if that is nothing.
std::shared_ptr<EnvironmentPreparation> prepare_beside(
    asio::io_context& io,
    const ServePlan& plan,
    const ServiceStart& start,
    session::Service& service,
    const std::function<void()>& on_provided,
    const std::function<void(Error)>& give_up) {
    const auto provide = [&plan, &service, on_provided, give_up](session::KernelCatalog catalog) {
        if (service.preparing()) {
            // In one turn of the loop: who reads it finds the sessions that it promises.
            if (Status told = tell_ready(plan); told.has_error()) {
                give_up(std::move(told).error());
                return;
            }
        }
        print_not_offered(catalog);
        service.provide(std::move(catalog));
        on_provided();
        log_event(LogLevel::kInfo, "prepared");
    };
    const auto end =
        [&service, provide, give_up, of_host = start.of_host](Result<session::KernelCatalog> made) {
            if (made.has_value()) {
                provide(std::move(made).value());
                return;
            }
            log_event(LogLevel::kWarning, "preparing", {{"message", made.error().message()}});
            if (!service.preparing()) {
                return;  // another start tries again
            }
            if (of_host) {
                provide(*of_host);
                return;
            }
            give_up(refuse_without_image(std::move(made).error()));
        };
    return make_preparation(io, start, log_preparing, end);
}

void finish_last_work(asio::io_context& io) {
    (void)io.run_for(kServeLastWork);
    if (!io.stopped()) {
        log_event(LogLevel::kWarning, "unfinished", {{"waited_ms", kServeLastWork.count()}});
    }
}

/// The manager is none of the server's conditions.
void tell_manager(const std::string& notice) {
    if (const Status told = notify_manager(notice); told.has_error()) {
        log_event(LogLevel::kWarning, "manager", {{"message", told.error().message()}});
    }
}

/// Which connections pass in that format.
http::InPause waiting_connections(int format) {
    if (format >= kHandOverFormatOfRuns) {
        return http::InPause::kAwait;
    }
    return format >= kHandOverFormatOfConnections ? http::InPause::kRest : http::InPause::kClose;
}

void log_upgrade(Upgrade::News news, const std::vector<std::string>& told) {
    const auto level = news == Upgrade::News::kRefused ? LogLevel::kWarning : LogLevel::kInfo;
    log_event(level, "upgrade", describe_news(news, told));
}

}  // namespace

Server::Server(const ServePlan& plan, const CommandLine& line, StateDir state_dir)
    : plan_(plan), line_(line), state_dir_(std::move(state_dir)) {}

Result<std::unique_ptr<Server>> Server::create(
    const ServePlan& plan, const CommandLine& line, HandOver before) {
    BOOST_OUTCOME_TRY(
        StateDir state_dir, StateDir::lock(plan.state_dir, std::move(before.state_lock)));
    std::unique_ptr<Server> server(new Server(plan, line, std::move(state_dir)));
    BOOST_OUTCOME_TRY(server->make_parts(std::move(before)));
    return server;
}

Status Server::make_parts(HandOver before) {
    is_first_ = before.version.empty();
    upgrades_ = before.upgrades;
    const std::string& directory = state_dir_.path();
    opened_ = open_store(plan_, directory);
    BOOST_OUTCOME_TRY(
        zmq_front_, make_zmq_front(io_, plan_, directory + "/connections", before.sessions));
    BOOST_OUTCOME_TRY(start_, plan_service(plan_));
    BOOST_OUTCOME_TRY(providers_, make_providers(io_, plan_, directory, before.sessions));
    start_->config.egress_service = providers_.egress;
    start_->config.operator_tools = providers_.tools->broker();
    start_->config.checkpoint_directory = directory;
    service_ = std::make_unique<session::Service>(io_, std::move(start_->config));
    service_->add_listener(zmq_front_.get());
    const OfferedTools offered{providers_.tools->broker(), providers_.tools->approvals()};
    BOOST_OUTCOME_TRY(fronts_, Fronts::create(io_, plan_, *service_, opened_, offered));
    if (const Status taken = take_awaiting(before.sessions, before.sockets); taken.has_error()) {
        // Clients that see their connections closed are less than sessions that end.
        log_event(LogLevel::kWarning, "upgrade", {{"message", taken.error().message()}});
    }
    BOOST_OUTCOME_TRY(
        listeners_,
        Listeners::open(
            io_, plan_.listening, fronts_->application(), log_request, std::move(before.sockets)));
    const nlohmann::json names = std::move(before.sessions.fronts);
    service_->take_over(std::move(before.sessions));
    zmq_front_->end_taking_over();
    BOOST_OUTCOME_TRY(fronts_->go_on(names));
    arrivals_ = watch_environments(io_, *service_);
    upgrade_ = Upgrade::create(io_, upgrade_hooks(), {});
    BOOST_OUTCOME_TRY(upgrade_signal_, UpgradeSignal::create(io_, [this] { upgrade_->begin(); }));
    return ok();
}

Status Server::announce() {
    ServerRecord record;
    record.url = listeners_->urls().front();
    record.token = plan_.token;
    record.base_url = plan_.listening.base_url.text();
    if (plan_.listening.tls) {
        record.certificate_sha256 = plan_.listening.tls->certificate_sha256();
    }
    record.pid = ::getpid();
    record.started_at = to_iso8601(std::chrono::system_clock::now());
    record.version = version_text();
    BOOST_OUTCOME_TRY(state_dir_.publish(record));
    if (is_first_) {
        print(to_text({listeners_->urls(), plan_.token, plan_.token_source, state_dir_.path()}));
    }
    log_event(LogLevel::kInfo, "serving", {{"url", record.url}, {"pid", record.pid}});
    tell_manager(ready_notice("serves at " + record.url));
    return ok();
}

Status Server::begin() {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        signals_.add(signal);
    }
    signals_.async_wait([this](const boost::system::error_code& error, int signal) {
        if (error) {
            return;
        }
        // From here on a second signal has its default effect: it ends the process at once.
        boost::system::error_code ignored;  // Ignored: nothing to do about it while stopping.
        (void)signals_.clear(ignored);
        log_event(LogLevel::kInfo, "stopping", {{"signal", signal}});
        stop();
    });
    listeners_->start();
    providers_.tools->start();
    BOOST_OUTCOME_TRY(announce());
    upgrade_signal_->start();
    if (!service_->preparing()) {
        BOOST_OUTCOME_TRY(tell_ready(plan_));
    }
    if (start_->load) {
        begin_preparing();
    }
    return ok();
}

void Server::begin_preparing() {
    const auto on_provided = [arrivals = arrivals_] {
        if (arrivals) {
            arrivals->look_again();
        }
    };
    preparation_ = prepare_beside(io_, plan_, *start_, *service_, on_provided, [this](Error error) {
        fail(std::move(error));
    });
    log_preparing("the image that sessions run from is being made");
    preparation_->begin();
}

void Server::fail(Error error) {
    failure_ = std::move(error);
    boost::system::error_code ignored;  // Ignored: nothing to do about it while stopping.
    (void)signals_.cancel(ignored);
    stop();
}

void Server::stop() {
    upgrade_->stop();
    upgrade_signal_->stop();
    tell_manager(stopping_notice());
    // Else everything ends already, for a program that now gets nothing.
    if (!std::exchange(passed_, std::nullopt)) {
        end();
    }
}

void Server::end() {
    if (preparation_) {
        preparation_->stop();
    }
    if (arrivals_) {
        arrivals_->stop();
    }
    fronts_->announce_shutdown();
    service_->shutdown();
    providers_.tools->stop();
    listeners_->stop(kStopPatience, [this] { stopped_ = true; });
}

/// One that came while everything ended for another program: that would never hear of it.
void Server::look_for_late_signal() {
    if (!passed_) {
        return;
    }
    signals_.async_wait([this](const boost::system::error_code& error, int signal) {
        if (!error) {
            log_event(LogLevel::kInfo, "stopping", {{"signal", signal}});
            passed_.reset();
        }
    });
    io_.restart();
    (void)io_.poll();
}

Status Server::leave(int format) {
    BOOST_OUTCOME_TRY(service_->prepare_passing());
    Status collected = format >= kHandOverFormatOfZmq ? zmq_front_->collect() : ok();
    if (collected.has_value() && format >= kHandOverFormatOfNetworks) {
        collected = pass_providers(providers_, passed_sessions_);
    }
    if (collected.has_error()) {
        service_->cancel_passing();
        return collected;
    }
    auto sockets = listeners_->pass_on(
        waiting_connections(format) == http::InPause::kClose ? 0 : kPassedConnectionsMax);
    if (sockets.has_error()) {
        service_->cancel_passing();
        return std::move(sockets).error();
    }
    passed_ = std::move(sockets).value();
    passed_sessions_.fronts = fronts_->pass_on();
    if (format >= kHandOverFormatOfZmq) {
        pass_zmq(*zmq_front_, passed_sessions_);
    }
    pass_awaiting(*passed_, passed_sessions_);
    service_->pass_on(shared_, passed_sessions_);
    for (const session::PassedSession& session : passed_sessions_.sessions) {
        if (format < kHandOverFormatOfZmq) {
            zmq_front_->on_session_closed(session.id);  // no client is connected to its sockets
        }
    }
    format_ = format;
    tell_manager(reloading_notice(std::chrono::steady_clock::now()));
    upgrade_signal_->stop();
    end();
    return ok();
}

ProgramCheck Server::make_check() const {
    ProgramCheck check{line_, state_dir_.path() + "/upgrade", {}};
    for (const http::ListenAddress& address : plan_.listening.addresses) {
        check.addresses.push_back(http::to_text(address));
    }
    return check;
}

Upgrade::Hooks Server::upgrade_hooks() {
    return {
        .check =
            [check = make_check()](std::stop_token stop) mutable {
                check.stop = std::move(stop);
                return check_program(check);
            },
        .end_lost = [this] { service_->end_lost(); },
        .in_the_way =
            [this](int format) {
                return find_in_the_way(*service_, *fronts_, *zmq_front_, format);
            },
        .at_work = [this](int format) { return find_work(*service_, *listeners_, format); },
        .running = [this] { return service_->find_work(false); },
        .pause =
            [this](
                int format,
                std::chrono::milliseconds patience,
                const std::function<void(bool)>& done) {
                zmq_front_->hold();
                listeners_->pause(patience, waiting_connections(format), done);
            },
        .part =
            [this](std::chrono::milliseconds patience, const std::function<void(bool)>& done) {
                fronts_->part();
                listeners_->wait_until_empty(patience, done);
            },
        .resume =
            [this] {
                fronts_->end_parting();
                zmq_front_->resume();
                listeners_->resume();
            },
        .leave = [this](int format) { return leave(format); },
        .tell = log_upgrade};
}

HandOver Server::make_hand_over() {
    HandOver next;
    next.version = version_text();
    if (plan_.token_source.empty()) {
        next.token = plan_.token;
    }
    next.sockets = std::move(*passed_);
    next.state_lock = state_dir_.pass_on();
    next.upgrades = upgrades_ + 1;
    next.format = format_;
    zmq_front_->leave_files();
    shared_.move_to(passed_sessions_);
    next.sessions = std::move(passed_sessions_);
    return next;
}

Result<std::optional<HandOver>> Server::run() {
    BOOST_OUTCOME_TRY(begin());
    while (!stopped_ && io_.run_one() > 0) {
    }
    boost::system::error_code ignored;  // Ignored: no wait is left in any case.
    (void)signals_.cancel(ignored);
    zmq_front_->stop();
    finish_last_work(io_);
    if (providers_.egress) {
        providers_.egress->stop();
    }
    log_event(LogLevel::kInfo, "stopped");
    if (failure_) {
        return *failure_;
    }
    look_for_late_signal();
    if (!passed_) {
        shared_.move_to(passed_sessions_);
        session::end_passed(std::move(passed_sessions_));
    }
    return passed_ ? std::optional(make_hand_over()) : std::nullopt;
}

}  // namespace cellkeep::cli
