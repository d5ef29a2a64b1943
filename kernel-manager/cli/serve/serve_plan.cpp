// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/serve/serve_plan.hpp"

#include "kernel-manager/cli/serve/egress_setup.hpp"
#include "kernel-manager/cli/serve/state_dir.hpp"
#include "kernel-manager/http/access/token_file.hpp"
#include "kernel-manager/service/options_check.hpp"
#include "protocol/support/syscall.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace cellkeep::cli {

namespace {

constexpr std::size_t kTokenBytes = 32;
/// Enough for one who asks now and then, and for the next while the first is replaced.
constexpr std::size_t kPrespawnCount = 2;
/// For a crowd that comes again.
constexpr std::size_t kPrespawnMost = 64;
/// Each has five ZeroMQ sockets, and a ZeroMQ context holds 32,768.
constexpr std::size_t kSessionsMax = 6'000;
/// Of --preload: names of modules, and the bytes of one.
constexpr std::size_t kPreloadMax = 64;
constexpr std::size_t kModuleNameBytesMax = 128;

Result<protocol::Transport> parse_transport(const std::string& text) {
    if (text == "ipc") {
        return protocol::Transport::kIpc;
    }
    if (text == "tcp") {
        return protocol::Transport::kTcp;
    }
    return Error(ErrorCode::kInvalidArgument, "zmq transport \"" + text + "\" is not ipc or tcp");
}

struct CollectedOptions {
    ServeOptions options;
    std::string token_source;  // empty: none was given
};

Result<CollectedOptions> collect_options(const ServeCommand& command) {
    ServeOptions options = command.flags;
    std::string token_source = options.token ? "--token" : "";
    // Read once at start, before any other thread exists.
    const char* token = std::getenv("CELLKEEP_TOKEN");  // NOLINT(concurrency-mt-unsafe)
    if (token != nullptr && !options.token) {
        options.token = token;
        token_source = "CELLKEEP_TOKEN";
    }
    if (command.config_path) {
        BOOST_OUTCOME_TRY(auto file, load_serve_config(*command.config_path));
        if (file.token && !options.token) {
            token_source = *command.config_path;
        }
        options = overlay(std::move(options), std::move(file));
    }
    return CollectedOptions{std::move(options), std::move(token_source)};
}

/// The profile of a notebook's kernel, with what the operator says otherwise.
Result<session::SessionLimits> kernel_limits(const ServeOptions& options) {
    const session::LimitCeilings ceilings;
    session::SessionLimits limits = session::notebook_limits(ceilings);
    limits.cpu_cores = options.kernel_cpu_cores.value_or(limits.cpu_cores);
    limits.memory_mb = options.kernel_memory_mb.value_or(limits.memory_mb);
    limits.disk_mb = options.kernel_disk_mb.value_or(limits.disk_mb);
    limits.processes = options.kernel_processes.value_or(limits.processes);
    limits.idle = std::chrono::seconds(options.cull_idle_timeout.value_or(0));
    BOOST_OUTCOME_TRY(with_context(
        session::check_limits(limits, ceilings), "kernel options (kernel_…, cull_idle_timeout)"));
    return limits;
}

/// Who may come. The plan knows already where it listens.
Status plan_tokens(const ServeOptions& options, ServePlan& plan) {
    if (options.token && options.token->empty()) {
        return Error(ErrorCode::kInvalidArgument, "the token is empty");
    }
    if (options.token_file) {
        BOOST_OUTCOME_TRY(plan.principals, http::load_token_file(*options.token_file));
    }
    if (!plan.listening.loopback() && !options.token && plan.principals.empty()) {
        return Error(
            ErrorCode::kInvalidArgument,
            "listening on an address that others can reach needs a token of yours",
            "Set CELLKEEP_TOKEN (or --token, --token-file), or listen on 127.0.0.1.");
    }
    if (options.token) {
        plan.token = *options.token;
    } else {
        BOOST_OUTCOME_TRY(plan.token, secret_hex(kTokenBytes));
    }
    return http::check_not_among(plan.principals, plan.token);
}

Status plan_e2b(const ServeOptions& options, ServePlan& plan) {
    plan.e2b_snapshots = options.e2b_snapshots.value_or(false);
    plan.e2b_debug = options.e2b_debug.value_or(false);
    if (plan.e2b_debug && !plan.listening.loopback()) {
        return Error(
            ErrorCode::kInvalidArgument,
            "e2b-debug lets everyone in who reaches the server, and others can reach this one",
            "Listen on 127.0.0.1.");
    }
    return ok();
}

/// Names of Python modules, each with its packages: "numpy.random".
bool is_module_name(std::string_view name) {
    const auto is_part = [](std::string_view part) { return session::is_variable_name(part); };
    while (true) {
        const std::size_t dot = name.find('.');
        if (!is_part(name.substr(0, dot))) {
            return false;
        }
        if (dot == std::string_view::npos) {
            return true;
        }
        name.remove_prefix(dot + 1);
    }
}

Status plan_preload(const ServeOptions& options, ServePlan& plan) {
    if (!options.preload) {
        return ok();
    }
    if (options.preload->size() > kPreloadMax) {
        return Error(
            ErrorCode::kInvalidArgument,
            "preload: at most " + std::to_string(kPreloadMax) + " modules");
    }
    for (const std::string& name : *options.preload) {
        if (name.size() > kModuleNameBytesMax || !is_module_name(name)) {
            return Error(
                ErrorCode::kInvalidArgument,
                "preload: \"" + name + "\" is not the name of a Python module");
        }
        if (name == "none" && options.preload->size() > 1) {
            return Error(
                ErrorCode::kInvalidArgument, "preload: \"none\" stands alone, without modules");
        }
    }
    plan.preload = *options.preload;
    if (plan.preload == std::vector<std::string>{"none"}) {
        plan.preload.clear();
    }
    return ok();
}

/// What kernels of Jupyter front ends get.
Status plan_kernels(const ServeOptions& options, ServePlan& plan) {
    plan.default_kernel_name = options.default_kernel_name.value_or(plan.default_kernel_name);
    plan.allowed_envs = options.allowed_envs.value_or(std::vector<std::string>());
    for (const std::string& name : plan.allowed_envs) {
        if (!session::is_variable_name(name)) {
            return Error(
                ErrorCode::kInvalidArgument,
                "allowed-envs: \"" + name + "\" is not the name of an environment variable");
        }
    }
    plan.cull.connected = options.cull_connected.value_or(false);
    plan.cull.busy = options.cull_busy.value_or(false);
    plan.store = !options.no_store.value_or(false);
    plan.mcp_fixtures = options.mcp_fixtures.value_or(false);
    plan.zygotes = !options.no_zygotes.value_or(false);
    BOOST_OUTCOME_TRY(plan_preload(options, plan));
    plan.prespawn_count =
        options.prespawn_count.value_or(std::min(kPrespawnCount, plan.sessions_max));
    if (plan.prespawn_count > plan.sessions_max) {
        return Error(
            ErrorCode::kInvalidArgument,
            "prespawn-count must be at most max-sessions, " + std::to_string(plan.sessions_max));
    }
    // Who wants none wants none.
    plan.prespawn_most = options.prespawn_most.value_or(
        plan.prespawn_count == 0 ? 0 : std::min(kPrespawnMost, plan.sessions_max));
    if (plan.prespawn_most > plan.sessions_max) {
        return Error(
            ErrorCode::kInvalidArgument,
            "prespawn-most must be at most max-sessions, " + std::to_string(plan.sessions_max));
    }
    BOOST_OUTCOME_TRY(plan.kernel_limits, kernel_limits(options));
    return ok();
}

}  // namespace

Result<ServePlan> make_serve_plan(
    const ServeCommand& command, const std::vector<http::ListenAddress>& passed) {
    BOOST_OUTCOME_TRY(CollectedOptions collected, collect_options(command));
    const ServeOptions& options = collected.options;
    ServePlan plan;
    plan.token_source = std::move(collected.token_source);
    BOOST_OUTCOME_TRY(plan.listening, plan_listening(options, passed));
    BOOST_OUTCOME_TRY(plan_tokens(options, plan));
    BOOST_OUTCOME_TRY(plan_e2b(options, plan));
    if (options.state_dir) {
        plan.state_dir = *options.state_dir;
    } else {
        BOOST_OUTCOME_TRY(plan.state_dir, default_state_dir());
    }
    plan.sessions_max = options.max_sessions.value_or(session::ServiceConfig{}.sessions_max);
    if (plan.sessions_max < 1 || plan.sessions_max > kSessionsMax) {
        return Error(
            ErrorCode::kInvalidArgument,
            "max-sessions must be a number from 1 to " + std::to_string(kSessionsMax));
    }
    const session::ServiceConfig defaults;
    plan.consecutive_failures =
        options.consecutive_failures.value_or(defaults.consecutive_failures);
    if (plan.consecutive_failures > defaults.ceilings.consecutive_failures) {
        return Error(
            ErrorCode::kInvalidArgument,
            "consecutive-failures must be at most " +
                std::to_string(defaults.ceilings.consecutive_failures));
    }
    plan.freeze_after =
        options.freeze_after ? std::chrono::seconds(*options.freeze_after) : defaults.freeze_after;
    if (plan.freeze_after > session::kFreezeAfterMax) {
        return Error(
            ErrorCode::kInvalidArgument,
            "freeze-after must be at most " + std::to_string(session::kFreezeAfterMax.count()) +
                " seconds");
    }
    plan.allow_degraded = options.allow_degraded.value_or(std::vector<std::string>());
    BOOST_OUTCOME_TRY(plan.package_index, plan_package_index(options));
    BOOST_OUTCOME_TRY(plan.egress, plan_egress(options, plan.package_index));
    if (options.mcp_servers) {
        BOOST_OUTCOME_TRY(plan.tool_servers, tools::load_servers(*options.mcp_servers));
    }
    plan.ready_fd = options.ready_fd;
    plan.inputs = options.inputs.value_or(plan.inputs);
    plan.image = options.image.value_or(plan.image);
    BOOST_OUTCOME_TRY(
        plan.while_preparing, parse_while_preparing(options.while_preparing.value_or("wait")));
    plan.kernels = options.kernels.value_or(plan.kernels);
    plan.foreign_kernels = options.foreign_kernels.value_or(plan.foreign_kernels);
    BOOST_OUTCOME_TRY(plan.transport, parse_transport(options.zmq_transport.value_or("ipc")));
    BOOST_OUTCOME_TRY(plan.log_level, parse_log_level(options.log_level.value_or("info")));
    BOOST_OUTCOME_TRY(plan.log_format, parse_log_format(options.log_format.value_or("json")));
    BOOST_OUTCOME_TRY(plan_kernels(options, plan));
    return plan;
}

}  // namespace cellkeep::cli
