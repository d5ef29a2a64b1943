// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/serve/server_parts.hpp"

#include "kernel-manager/cli/log.hpp"
#include "kernel-manager/cli/serve/egress_setup.hpp"
#include "kernel-manager/service/environment_choice.hpp"
#include "kernel-manager/session/passing/passed_network.hpp"
#include "kernel-manager/store/store.hpp"

#include <chrono>
#include <exception>
#include <string>
#include <utility>

namespace cellkeep::cli {

namespace asio = boost::asio;

namespace {

/// In PassedSessions::fronts.
constexpr const char* kZmqName = "jupyter_zmq";
constexpr const char* kAwaitingName = "awaiting";

/// Nothing if there was no program before, or one that knows nothing of it.
Result<jupyter::ZmqLeft> take_zmq(session::PassedSessions& before) {
    jupyter::ZmqLeft left;
    if (!before.fronts.is_object() || !before.fronts.contains(kZmqName)) {
        return left;
    }
    BOOST_OUTCOME_TRY(left.values, jupyter::read_zmq(before.fronts.at(kZmqName)));
    if (left.values.watch) {
        if (*left.values.watch >= before.front_fds.size()) {
            return Error(ErrorCode::kProtocol, "passed ZeroMQ sockets: no such watch");
        }
        left.watch = std::move(before.front_fds[*left.values.watch]);
    }
    return left;
}

}  // namespace

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
    asio::io_context& io,
    const ServePlan& plan,
    std::string directory,
    session::PassedSessions& before) {
    jupyter::ZmqFrontConfig config;
    config.transport = plan.transport;
    config.directory = std::move(directory);
    config.log = [](const std::string& line) {
        log_event(LogLevel::kWarning, "zmq", {{"message", line}});
    };
    auto left = take_zmq(before);
    if (left.has_error()) {
        config.log("every connection file is a new one: " + left.error().message());
        left = jupyter::ZmqLeft();
    }
    return jupyter::ZmqFront::create(io, std::move(config), std::move(left).value());
}

void pass_zmq(jupyter::ZmqFront& front, session::PassedSessions& passed) {
    jupyter::ZmqLeft left = front.pass_on();
    if (left.watch) {
        left.values.watch = passed.front_fds.size();
        passed.front_fds.push_back(std::move(left.watch));
    }
    passed.fronts[kZmqName] = jupyter::write_zmq(left.values);
}

void pass_awaiting(InheritedSockets& sockets, session::PassedSessions& passed) {
    nlohmann::json all = nlohmann::json::array();
    for (std::size_t at = 0; at < sockets.entries().size(); ++at) {
        for (http::AwaitingConnection& one : std::exchange(sockets.socket(at).awaiting, {})) {
            all.push_back(
                {{"address", sockets.entries()[at].address},
                 {"fd", passed.front_fds.size()},
                 {"head", std::move(one.head)},
                 {"awaited", std::move(one.awaited)},
                 {"begun", one.begun}});
            passed.front_fds.push_back(std::move(one.fd));
        }
    }
    if (!all.empty()) {
        passed.fronts[kAwaitingName] = std::move(all);
    }
}

Status take_awaiting(session::PassedSessions& before, InheritedSockets& sockets) {
    if (!before.fronts.is_object() || !before.fronts.contains(kAwaitingName)) {
        return ok();
    }
    try {
        for (const nlohmann::json& one : before.fronts.at(kAwaitingName)) {
            auto& fd = before.front_fds.at(one.at("fd").get<std::size_t>());
            BOOST_OUTCOME_TRY(http::check_connection(fd));
            sockets.add_awaiting(
                one.at("address").get<std::string>(),
                {std::move(fd),
                 one.at("head").get<std::string>(),
                 one.at("awaited").get<std::string>(),
                 one.at("begun").get<bool>()});
        }
    } catch (const std::exception& failure) {
        return Error(ErrorCode::kProtocol, std::string("passed requests: ") + failure.what());
    }
    return ok();
}

Result<Providers> make_providers(
    asio::io_context& io,
    const ServePlan& plan,
    const std::string& directory,
    session::PassedSessions& before) {
    Providers made;
    const nlohmann::json authority = std::exchange(before.authority, nullptr);
    BOOST_OUTCOME_TRY(
        made.egress, make_egress_service(io, plan.egress, directory + "/egress", authority));
    BOOST_OUTCOME_TRY(
        made.tools, ToolsSetup::create(io, plan.tool_servers, plan.egress.certificates, directory));
    return made;
}

Status pass_providers(const Providers& providers, session::PassedSessions& passed) {
    if (providers.egress) {
        BOOST_OUTCOME_TRY(const auto authority, providers.egress->pass_on());
        passed.authority = session::write_authority(authority);
    }
    return ok();
}

}  // namespace cellkeep::cli
