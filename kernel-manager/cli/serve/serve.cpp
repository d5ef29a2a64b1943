// SPDX-License-Identifier: Apache-2.0
//
// `cellkeep serve`: where the parts are put together.
#include "kernel-manager/cli/log.hpp"
#include "kernel-manager/cli/preparing/environment_preparation.hpp"
#include "kernel-manager/cli/run/console.hpp"
#include "kernel-manager/cli/serve/egress_setup.hpp"
#include "kernel-manager/cli/serve/environment_setup.hpp"
#include "kernel-manager/cli/serve/fronts.hpp"
#include "kernel-manager/cli/serve/listening.hpp"
#include "kernel-manager/cli/serve/open_files.hpp"
#include "kernel-manager/cli/serve/serve_banner.hpp"
#include "kernel-manager/cli/serve/serve_plan.hpp"
#include "kernel-manager/cli/serve/service_setup.hpp"
#include "kernel-manager/cli/serve/state_dir.hpp"
#include "kernel-manager/cli/serve/tools_setup.hpp"
#include "kernel-manager/cli/version.hpp"
#include "kernel-manager/jupyter/zmq/zmq_front.hpp"
#include "kernel-manager/service/environment_choice.hpp"
#include "kernel-manager/service/service.hpp"
#include "kernel-manager/store/store.hpp"
#include "protocol/support/syscall.hpp"
#include "protocol/support/time.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace cellkeep::cli {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::milliseconds kStopPatience{5000};
/// For what the parts still have to do after the last connection closed.
constexpr std::chrono::milliseconds kServeLastWork{2000};

/// A server with fewer open files than it may need runs, logs that now, and refuses the sessions
/// for which they do not suffice.
void provide_open_files(std::size_t sessions_max) {
    const auto limit = raise_open_files(open_files_needed(sessions_max));
    std::optional<std::string> trouble;
    if (limit.has_error()) {
        trouble = "the limit of open files could not be raised: " + limit.error().message();
    } else {
        trouble = open_files_shortage(limit.value(), sessions_max);
    }
    if (trouble) {
        log_event(LogLevel::kWarning, "open_files", {{"message", *trouble}});
    }
}

void log_request(const http::AccessRecord& record) {
    if (!record.note.empty()) {
        log_event(
            LogLevel::kWarning, "connection", {{"remote", record.remote}, {"note", record.note}});
        return;
    }
    log_event(
        LogLevel::kInfo,
        "request",
        {{"remote", record.remote},
         {"method", record.method},
         {"path", record.path},
         {"principal", record.principal},
         {"status", record.status},
         {"bytes", record.bytes},
         {"duration_ms", static_cast<double>(record.duration.count()) / 1000.0}});
}

Status announce(const ServePlan& plan, const Listeners& listeners, StateDir& state_dir) {
    ServerRecord record;
    record.url = listeners.urls().front();
    record.token = plan.token;
    record.base_url = plan.listening.base_url.text();
    if (plan.listening.tls) {
        record.certificate_sha256 = plan.listening.tls->certificate_sha256();
    }
    record.pid = ::getpid();
    record.started_at = to_iso8601(std::chrono::system_clock::now());
    record.version = version_text();
    BOOST_OUTCOME_TRY(state_dir.publish(record));
    print(to_text({listeners.urls(), plan.token, plan.token_source, state_dir.path()}));
    return ok();
}

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

/// What every session needs, and the kernels that are made in advance.
Result<ServiceStart> plan_service(const ServePlan& plan) {
    BOOST_OUTCOME_TRY(
        ServiceStart start,
        begin_service(
            {plan.sessions_max,
             plan.allow_degraded,
             plan.image,
             plan.kernels,
             plan.foreign_kernels,
             plan.while_preparing}));
    session::ServiceConfig& config = start.config;
    if (!config.preparing) {
        print_not_offered(config.catalog);
    }
    if (!plan.inputs.empty()) {
        BOOST_OUTCOME_TRY(config.inputs, session::InputsDirectory::open(plan.inputs));
    }
    config.zygotes = plan.zygotes;
    config.preload = plan.preload;
    config.package_index = plan.package_index;
    // For agents, who mostly ask for nothing in particular, and for Jupyter's front ends.
    session::Prespawn agents;
    agents.count = plan.prespawn_count;
    session::Prespawn kernels = agents;
    kernels.options.limits = plan.kernel_limits;
    if (const auto language =
            jupyter::language_of(plan.default_kernel_name, config.catalog.languages())) {
        kernels.options.language = *language;
        session::name_environment(config.catalog, kernels.options);
    }
    config.prespawn = {agents, kernels};
    config.prespawn_most = plan.prespawn_most;
    config.log = [](const std::string& line) {
        log_event(LogLevel::kWarning, "session", {{"message", line}});
    };
    config.consecutive_failures = plan.consecutive_failures;
    config.freeze_after = plan.freeze_after;
    config.log_ready = [](std::chrono::milliseconds took) {
        log_event(LogLevel::kInfo, "ready", {{"warming_ms", took.count()}});
    };
    config.log_frozen = [](const std::string& session_id, bool frozen) {
        log_event(LogLevel::kInfo, frozen ? "frozen" : "thawed", {{"session", session_id}});
    };
    config.log_limit = [](const std::string& session_id,
                          const std::string& execution_id,
                          const session::LimitHit& hit) {
        log_event(
            LogLevel::kInfo,
            "limit",
            {{"session", session_id},
             {"execution", execution_id},
             {"reason", to_string(hit.reason)},
             {"message", hit.message}});
    };
    return start;
}

OpenedStore open_store(const ServePlan& plan, const std::string& directory) {
    if (!plan.store) {
        return {};
    }
    const auto log = [](const std::string& line) {
        log_event(LogLevel::kWarning, "store", {{"message", line}});
    };
    auto opened = store::Store::open(directory + "/history.db", log);
    if (opened.has_error()) {
        log("it is not used: " + opened.error().message());
        // A request for the server's health needs no token: only the log says where and why.
        return {nullptr, "the store could not be opened; nothing is remembered"};
    }
    return {std::move(opened).value(), ""};
}

Result<std::unique_ptr<jupyter::ZmqFront>> make_zmq_front(
    asio::io_context& io, const ServePlan& plan, std::string directory) {
    jupyter::ZmqFrontConfig config;
    config.transport = plan.transport;
    config.directory = std::move(directory);
    config.log = [](const std::string& line) {
        log_event(LogLevel::kWarning, "zmq", {{"message", line}});
    };
    return jupyter::ZmqFront::create(io, std::move(config));
}

void finish_last_work(asio::io_context& io) {
    (void)io.run_for(kServeLastWork);
    if (!io.stopped()) {
        log_event(LogLevel::kWarning, "unfinished", {{"waited_ms", kServeLastWork.count()}});
    }
}

/// What sessions may use outside their sandboxes.
struct Providers {
    std::shared_ptr<egress::EgressService> egress;  // null: no network
    std::unique_ptr<ToolsSetup> tools;
};

Result<Providers> make_providers(
    asio::io_context& io, const ServePlan& plan, const std::string& directory) {
    Providers made;
    BOOST_OUTCOME_TRY(made.egress, make_egress_service(io, plan.egress, directory + "/egress"));
    BOOST_OUTCOME_TRY(
        made.tools, ToolsSetup::create(io, plan.tool_servers, plan.egress.certificates, directory));
    return made;
}

/// signals outlives the wait.
void stop_at_signal(asio::signal_set& signals, std::function<void()> stop) {
    signals.async_wait(
        [&signals, stop = std::move(stop)](const boost::system::error_code& error, int signal) {
            if (error) {
                return;
            }
            // From here on a second signal has its default effect: it ends the process at once.
            boost::system::error_code ignored;  // Ignored: nothing to do about it while stopping.
            (void)signals.clear(ignored);
            log_event(LogLevel::kInfo, "stopping", {{"signal", signal}});
            stop();
        });
}

/// Runs until a signal stops it and everything has ended.
Status run_server(const ServePlan& plan) {
    BOOST_OUTCOME_TRY(StateDir state_dir, StateDir::lock(plan.state_dir));
    // Before the store, whose last questions are answered into it when the store goes.
    asio::io_context io(1);
    const OpenedStore opened = open_store(plan, state_dir.path());
    BOOST_OUTCOME_TRY(
        const auto zmq_front, make_zmq_front(io, plan, state_dir.path() + "/connections"));
    BOOST_OUTCOME_TRY(ServiceStart start, plan_service(plan));
    BOOST_OUTCOME_TRY(const Providers providers, make_providers(io, plan, state_dir.path()));
    start.config.egress_service = providers.egress;
    start.config.operator_tools = providers.tools->broker();
    start.config.checkpoint_directory = state_dir.path();
    session::Service service(io, std::move(start.config));
    service.add_listener(zmq_front.get());

    const OfferedTools offered{providers.tools->broker(), providers.tools->approvals()};
    BOOST_OUTCOME_TRY(const auto fronts, Fronts::create(io, plan, service, opened, offered));
    BOOST_OUTCOME_TRY(
        Listeners listeners,
        Listeners::open(io, plan.listening, fronts->application(), log_request));

    bool stopped = false;
    std::optional<Error> failure;
    std::shared_ptr<EnvironmentPreparation> preparation;
    const auto arrivals = watch_environments(io, service);
    const auto stop = [&] {
        if (preparation) {
            preparation->stop();
        }
        if (arrivals) {
            arrivals->stop();
        }
        fronts->announce_shutdown();
        service.shutdown();
        providers.tools->stop();
        listeners.stop(kStopPatience, [&stopped] { stopped = true; });
    };
    asio::signal_set signals(io, SIGINT, SIGTERM, SIGHUP);
    stop_at_signal(signals, stop);
    listeners.start();
    providers.tools->start();
    BOOST_OUTCOME_TRY(announce(plan, listeners, state_dir));
    log_event(LogLevel::kInfo, "serving", {{"url", listeners.urls().front()}, {"pid", ::getpid()}});
    if (!service.preparing()) {
        BOOST_OUTCOME_TRY(tell_ready(plan));
    }
    if (start.load) {
        const auto on_provided = [arrivals] {
            if (arrivals) {
                arrivals->look_again();
            }
        };
        preparation = prepare_beside(io, plan, start, service, on_provided, [&](Error error) {
            failure = std::move(error);
            boost::system::error_code ignored;  // Ignored: nothing to do about it while stopping.
            (void)signals.cancel(ignored);
            stop();
        });
        log_preparing("the image that sessions run from is being made");
        preparation->begin();
    }
    while (!stopped && io.run_one() > 0) {
    }
    zmq_front->stop();
    finish_last_work(io);
    if (providers.egress) {
        providers.egress->stop();
    }
    log_event(LogLevel::kInfo, "stopped");
    return failure ? Status(*failure) : Status(ok());
}

}  // namespace

int serve(const ServeCommand& command) {
    const auto plan = make_serve_plan(command);
    if (plan.has_error()) {
        print_error(plan.error());
        return kExitFailed;
    }
    configure_log(plan.value().log_level, plan.value().log_format);
    provide_open_files(plan.value().sessions_max);
    const Status served = run_server(plan.value());
    if (served.has_error()) {
        Error error = served.error();
        if (error.code() == ErrorCode::kConflict && error.hint().empty()) {
            error = std::move(error).with_hint("Choose another port with --listen.");
        }
        print_error(error);
        return kExitFailed;
    }
    return kExitDone;
}

}  // namespace cellkeep::cli
