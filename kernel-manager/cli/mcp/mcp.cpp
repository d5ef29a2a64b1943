// SPDX-License-Identifier: Apache-2.0
//
// `cellkeep mcp`: MCP over stdin and stdout, with sessions of this process or of a running server.
#include "kernel-manager/cli/commands.hpp"
#include "kernel-manager/cli/keep_flags.hpp"
#include "kernel-manager/cli/log.hpp"
#include "kernel-manager/cli/mcp/remote_answerer.hpp"
#include "kernel-manager/cli/preparing/environment_preparation.hpp"
#include "kernel-manager/cli/run/console.hpp"
#include "kernel-manager/cli/run/run_to_end.hpp"
#include "kernel-manager/cli/serve/open_files.hpp"
#include "kernel-manager/cli/serve/service_setup.hpp"
#include "kernel-manager/cli/serve/state_dir.hpp"
#include "kernel-manager/cli/serve/tools_setup.hpp"
#include "kernel-manager/cli/version.hpp"
#include "kernel-manager/mcp/front.hpp"
#include "kernel-manager/mcp/transport/stdio_endpoint.hpp"
#include "kernel-manager/service/service.hpp"
#include "protocol/support/syscall.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::cli {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::milliseconds kMcpLastWork{2000};

/// The descriptor for the protocol's own use. Whatever else writes to stdout writes to stderr from
/// now on: a stray line would break the protocol.
Result<UniqueFd> take_stdout() {
    UniqueFd output(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
    if (!output) {
        return Error::from_errno(errno, "dup(stdout)");
    }
    if (::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        return Error::from_errno(errno, "dup2(stderr, stdout)");
    }
    return output;
}

Result<UniqueFd> take_stdin() {
    UniqueFd input(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
    if (!input) {
        return Error::from_errno(errno, "dup(stdin)");
    }
    return input;
}

struct Pipes {
    UniqueFd input;
    UniqueFd output;
};

boost::asio::awaitable<Result<bool>> serve_to_end(mcp::StdioEndpoint& endpoint) {
    const Status served = co_await endpoint.serve();
    if (served.has_error()) {
        co_return served.error();
    }
    co_return true;
}

using GiveUp = std::function<void(Error)>;

/// What goes on while a client is served.
struct Beside {
    /// Called first. What it is given ends the service with an error; it may be empty.
    std::function<void(GiveUp)> begin;
    /// Called when the client has gone.
    std::function<void()> end;
};

/// Until the client's end, or a signal. Then waits for what `beside.end` has still to do.
Status serve_client(
    asio::io_context& io, mcp::Answerer& answerer, Pipes pipes, const Beside& beside) {
    mcp::StdioEndpoint endpoint(
        io,
        answerer,
        {std::string(http::kAdminName), http::Role::kAdmin},
        std::move(pipes.input),
        std::move(pipes.output));
    asio::signal_set signals(io, SIGINT, SIGTERM, SIGHUP);
    signals.async_wait([&](const boost::system::error_code& error, int /*signal*/) {
        if (error) {
            return;
        }
        // From here on a second signal ends the process at once.
        boost::system::error_code ignored;  // Ignored: nothing to do about it while stopping.
        (void)signals.clear(ignored);
        endpoint.stop();
    });
    std::optional<Error> failure;
    if (beside.begin) {
        beside.begin([&](Error why) {
            failure = std::move(why);
            endpoint.stop();
        });
    }
    const auto served = run_to_end(io, serve_to_end(endpoint));
    boost::system::error_code ignored;  // Ignored: the wait ends either way.
    (void)signals.cancel(ignored);
    beside.end();
    (void)io.run_for(kMcpLastWork);
    if (failure) {
        return *failure;
    }
    if (served.has_error()) {
        return served.error();
    }
    return ok();
}

/// What the operator's file names, as for `cellkeep serve`.
struct NamedServers {
    std::vector<tools::ServerEntry> entries;
    std::string directory;  // where reviews are kept
};

Result<NamedServers> load_named_servers(const std::optional<std::string>& file) {
    NamedServers named;
    if (file) {
        BOOST_OUTCOME_TRY(named.entries, tools::load_servers(*file));
        BOOST_OUTCOME_TRY(named.directory, provide_mcp_dir());
        configure_log(LogLevel::kInfo, LogFormat::kText);
    }
    return named;
}

/// What sessions run from is made beside: a client does not wait as long for its first answer.
std::shared_ptr<EnvironmentPreparation> prepare_beside_client(
    asio::io_context& io,
    const ServiceStart& start,
    session::Service& service,
    const GiveUp& give_up) {
    const auto say = [](const std::string& line) { print_error(line + "\n"); };
    const auto end =
        [&service, give_up, of_host = start.of_host](Result<session::KernelCatalog> made) {
            if (made.has_value()) {
                print_not_offered(made.value());
                service.provide(std::move(made).value());
            } else if (of_host) {
                print_error(made.error());
                service.provide(*of_host);
            } else {
                give_up(refuse_without_image(std::move(made).error()));
            }
        };
    return make_preparation(io, start, say, end);
}

Status serve_locally(const McpCommand& command, Pipes pipes) {
    // Before anything that takes long, so that the user learns of a wrong file at once.
    BOOST_OUTCOME_TRY(NamedServers named, load_named_servers(command.mcp_servers));
    // Ignored: with fewer the service refuses the sessions for which they do not suffice.
    (void)raise_open_files(open_files_needed(command.sessions_max));
    ServiceRequest request;
    request.sessions_max = command.sessions_max;
    request.allow_degraded = command.allow_degraded;
    request.kernels = command.kernels;
    BOOST_OUTCOME_TRY(ServiceStart start, begin_service(request));
    session::ServiceConfig& config = start.config;
    if (!config.preparing) {
        print_not_offered(config.catalog);
    }
    config.log = [](const std::string& line) { print_error("cellkeep mcp: " + line + "\n"); };
    asio::io_context io(1);
    BOOST_OUTCOME_TRY(
        const auto tools, ToolsSetup::create(io, std::move(named.entries), "", named.directory));
    config.operator_tools = tools->broker();
    session::Service service(io, std::move(config));
    mcp::Front front(
        io,
        service,
        {version_text(),
         mcp::WithFixtures::kNo,
         tools->approvals(),
         mcp::OtherApprovers::kNone,
         tools->broker()});
    tools->start();
    std::shared_ptr<EnvironmentPreparation> preparation;
    const auto begin = [&](const GiveUp& give_up) {
        if (start.load) {
            preparation = prepare_beside_client(io, start, service, give_up);
            preparation->begin();
        }
    };
    const auto end = [&] {
        if (preparation) {
            preparation->stop();
        }
        front.stop();
        service.shutdown();
        tools->stop();
    };
    return serve_client(io, front, std::move(pipes), {begin, end});
}

Status serve_remotely(const std::string& state_dir, Pipes pipes) {
    BOOST_OUTCOME_TRY(http::ServerAddress address, find_server(state_dir));
    asio::io_context io(1);
    RemoteAnswerer answerer(io, std::move(address), [state_dir] { return find_server(state_dir); });
    return serve_client(io, answerer, std::move(pipes), {{}, [&answerer] { answerer.end(); }});
}

Status serve_stdio(const McpCommand& command) {
    Pipes pipes;
    BOOST_OUTCOME_TRY(pipes.output, take_stdout());
    BOOST_OUTCOME_TRY(pipes.input, take_stdin());
    const KeepFlags keep_input(STDIN_FILENO);
    return command.server_state_dir ? serve_remotely(*command.server_state_dir, std::move(pipes))
                                    : serve_locally(command, std::move(pipes));
}

}  // namespace

int mcp(const McpCommand& command) {
    const Status served = serve_stdio(command);
    if (served.has_error()) {
        print_error(served.error());
        return kExitFailed;
    }
    return kExitDone;
}

}  // namespace cellkeep::cli
