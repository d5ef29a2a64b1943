// SPDX-License-Identifier: Apache-2.0
//
// `cellkeep serve`: where the parts are put together.
#include "kernel-manager/agent/routes.hpp"
#include "kernel-manager/cli/commands.hpp"
#include "kernel-manager/cli/console.hpp"
#include "kernel-manager/cli/log.hpp"
#include "kernel-manager/cli/service_setup.hpp"
#include "kernel-manager/cli/state_dir.hpp"
#include "kernel-manager/cli/version.hpp"
#include "kernel-manager/http/listener.hpp"
#include "kernel-manager/jupyter/zmq_front.hpp"
#include "kernel-manager/session/backend.hpp"
#include "kernel-manager/session/service.hpp"
#include "protocol/support/syscall.hpp"
#include "protocol/support/time.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

namespace cellkeep::cli {

namespace asio = boost::asio;

namespace {

constexpr std::uint16_t kDefaultPort = 8888;
/// Ports tried after the default one is taken.
constexpr std::uint16_t kPortsTried = 100;
constexpr std::size_t kTokenBytes = 32;
/// Each has five ZeroMQ sockets, and a ZeroMQ context holds 32,768.
constexpr std::size_t kSessionsMax = 6'000;
constexpr std::chrono::milliseconds kStopPatience{5000};
/// For what the parts still have to do after the last connection closed.
constexpr std::chrono::milliseconds kLastWork{2000};

/// Everything serve decides before it opens anything.
struct Plan {
    http::ListenAddress address;
    bool address_given = false;
    std::string token;
    bool token_given = false;
    std::string state_dir;
    std::size_t sessions_max = session::ServiceConfig{}.sessions_max;
    std::vector<std::string> allow_degraded;
    std::vector<std::string> allow_host;
    std::optional<int> ready_fd;
    protocol::Transport transport = protocol::Transport::kIpc;
    LogLevel log_level = LogLevel::kInfo;
    LogFormat log_format = LogFormat::kJson;
};

Result<protocol::Transport> parse_transport(const std::string& text) {
    if (text == "ipc") {
        return protocol::Transport::kIpc;
    }
    if (text == "tcp") {
        return protocol::Transport::kTcp;
    }
    return Error(ErrorCode::kInvalidArgument, "zmq transport \"" + text + "\" is not ipc or tcp");
}

Result<ServeOptions> collect_options(const ServeCommand& command) {
    ServeOptions options = command.flags;
    // Read once at start, before any other thread exists.
    const char* token = std::getenv("CELLKEEP_TOKEN");  // NOLINT(concurrency-mt-unsafe)
    if (token != nullptr && !options.token) {
        options.token = token;
    }
    if (command.config_path) {
        BOOST_OUTCOME_TRY(auto file, load_serve_config(*command.config_path));
        options = overlay(std::move(options), std::move(file));
    }
    return options;
}

Result<Plan> make_plan(const ServeCommand& command) {
    BOOST_OUTCOME_TRY(const ServeOptions options, collect_options(command));
    Plan plan;
    plan.address = {"127.0.0.1", kDefaultPort, true};
    if (options.listen) {
        BOOST_OUTCOME_TRY(plan.address, http::parse_listen_address(*options.listen));
        plan.address_given = true;
    }
    plan.token_given = options.token.has_value();
    if (plan.token_given && options.token->empty()) {
        return Error(ErrorCode::kInvalidArgument, "the token is empty");
    }
    if (!plan.address.loopback && !plan.token_given) {
        return Error(
            ErrorCode::kInvalidArgument,
            "listening on " + plan.address.host +
                ", which others can reach, needs a token of yours",
            "Set CELLKEEP_TOKEN (or --token), or listen on 127.0.0.1.");
    }
    if (plan.token_given) {
        plan.token = *options.token;
    } else {
        BOOST_OUTCOME_TRY(plan.token, random_hex(kTokenBytes));
    }
    if (options.state_dir) {
        plan.state_dir = *options.state_dir;
    } else {
        BOOST_OUTCOME_TRY(plan.state_dir, default_state_dir());
    }
    plan.sessions_max = options.max_sessions.value_or(plan.sessions_max);
    if (plan.sessions_max < 1 || plan.sessions_max > kSessionsMax) {
        return Error(
            ErrorCode::kInvalidArgument,
            "max-sessions must be a number from 1 to " + std::to_string(kSessionsMax));
    }
    plan.allow_degraded = options.allow_degraded.value_or(std::vector<std::string>());
    plan.allow_host = options.allow_host.value_or(std::vector<std::string>());
    plan.ready_fd = options.ready_fd;
    BOOST_OUTCOME_TRY(plan.transport, parse_transport(options.zmq_transport.value_or("ipc")));
    BOOST_OUTCOME_TRY(plan.log_level, parse_log_level(options.log_level.value_or("info")));
    BOOST_OUTCOME_TRY(plan.log_format, parse_log_format(options.log_format.value_or("json")));
    return plan;
}

/// Thousands of sessions and connections need descriptors; the soft limit is often 1024.
void raise_descriptor_limit() {
    struct rlimit limit {};
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        // Ignored: the server then has fewer, and says so when they are used up.
        (void)::setrlimit(RLIMIT_NOFILE, &limit);
    }
}

void log_request(const http::AccessRecord& record) {
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

Result<std::unique_ptr<http::Listener>> listen(
    asio::io_context& io, const Plan& plan, const http::Application& application) {
    http::ListenAddress address = plan.address;
    const std::uint16_t last =
        plan.address_given ? address.port : static_cast<std::uint16_t>(address.port + kPortsTried);
    for (;;) {
        auto listener = http::Listener::create(io, address, application, {}, log_request);
        if (listener.has_value() || listener.error().code() != ErrorCode::kConflict ||
            address.port >= last) {
            return listener;
        }
        ++address.port;
    }
}

Status announce(const Plan& plan, const http::Listener& listener, StateDir& state_dir) {
    ServerRecord record;
    record.url = listener.url();
    record.token = plan.token;
    record.pid = ::getpid();
    record.started_at = to_iso8601(std::chrono::system_clock::now());
    record.version = version_text();
    BOOST_OUTCOME_TRY(state_dir.publish(record));
    print(
        "Cellkeep " + version_text() + " serves the session API at\n    " + listener.url() +
        "/?token=" + plan.token + "\nState: " + state_dir.path() + ". Stop with Ctrl-C.\n");
    if (plan.ready_fd) {
        const UniqueFd ready(*plan.ready_fd);
        BOOST_OUTCOME_TRY(with_context(write_all(ready.get(), "READY\n"), "--ready-fd"));
    }
    return ok();
}

/// Runs until a signal stops it and everything has ended.
Status run_server(const Plan& plan) {
    BOOST_OUTCOME_TRY(StateDir state_dir, StateDir::lock(plan.state_dir));
    asio::io_context io(1);
    jupyter::ZmqFrontConfig zmq;
    zmq.transport = plan.transport;
    zmq.directory = state_dir.path() + "/connections";
    zmq.log = [](const std::string& line) {
        log_event(LogLevel::kWarning, "zmq", {{"message", line}});
    };
    BOOST_OUTCOME_TRY(const auto zmq_front, jupyter::ZmqFront::create(io, std::move(zmq)));
    BOOST_OUTCOME_TRY(
        session::ServiceConfig config, make_service_config(plan.sessions_max, plan.allow_degraded));
    session::Service service(io, std::move(config));
    service.add_listener(zmq_front.get());

    http::Application application(
        http::TokenAuth(plan.token),
        plan.address.loopback ? http::HostGuard(plan.allow_host) : http::HostGuard());
    session::ServiceBackend backend(service);
    agent::Routes routes(backend, version_text());
    routes.add_to(application.router());
    BOOST_OUTCOME_TRY(const auto listener, listen(io, plan, application));

    bool stopped = false;
    asio::signal_set signals(io, SIGINT, SIGTERM, SIGHUP);
    signals.async_wait([&](const boost::system::error_code& error, int signal) {
        if (error) {
            return;
        }
        // From here on a second signal has its default effect: it ends the process at once.
        boost::system::error_code ignored;  // Ignored: nothing to do about it while stopping.
        (void)signals.clear(ignored);
        log_event(LogLevel::kInfo, "stopping", {{"signal", signal}});
        service.shutdown();
        listener->stop(kStopPatience, [&stopped] { stopped = true; });
    });
    listener->start();
    BOOST_OUTCOME_TRY(announce(plan, *listener, state_dir));
    log_event(LogLevel::kInfo, "serving", {{"url", listener->url()}, {"pid", ::getpid()}});
    while (!stopped && io.run_one() > 0) {
    }
    (void)io.run_for(kLastWork);
    log_event(LogLevel::kInfo, "stopped");
    return ok();
}

}  // namespace

int serve(const ServeCommand& command) {
    const auto plan = make_plan(command);
    if (plan.has_error()) {
        print_error(plan.error());
        return kExitFailed;
    }
    configure_log(plan.value().log_level, plan.value().log_format);
    raise_descriptor_limit();
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
