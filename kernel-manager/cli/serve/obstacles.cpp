// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/serve/obstacles.hpp"

#include "kernel-manager/api/routes/execution_routes.hpp"
#include "kernel-manager/cli/upgrade/hand_over.hpp"
#include "kernel-manager/egress/network_policy.hpp"
#include "kernel-manager/process/command_table.hpp"

#include <algorithm>
#include <optional>
#include <set>

namespace cellkeep::cli {

namespace {

bool has_dead_interpreter(const session::SessionInfo& info) {
    return std::any_of(info.languages.begin(), info.languages.end(), [](const auto& language) {
        return language.state == session::KernelState::kDead;
    });
}

/// What the session has that a program which reads that format takes over none of; nullopt:
/// nothing.
std::optional<std::string> find_newer_part(
    session::Session& session, const session::Service& service, const Fronts& fronts, int format) {
    if (format < kHandOverFormatOfCommands) {
        process::CommandTable* const commands = session.commands();
        if (commands != nullptr && !commands->are_over()) {
            return "a command runs, and the other program takes over none";
        }
        if (session.info().connections > 0) {
            return "a client is connected, and the other program knows none";
        }
    }
    std::optional<std::string> part;
    if (format < kHandOverFormatOfLanguages) {
        part = service.find_newer_part(session.id());
    }
    if (!part) {
        part = fronts.find_newer_part(session, format);
    }
    if (!part && format < kHandOverFormatOfFamilies && service.is_in_family(session.id())) {
        part = "it has branches, or is one";
    }
    if (!part && format < kHandOverFormatOfNetworks &&
        session.info().network.mode != egress::NetworkMode::kNone) {
        part = "it has a network";
    }
    if (!part && format < kHandOverFormatOfTheDead && has_dead_interpreter(session.info())) {
        part = "one of its interpreters is dead";
    }
    return part ? std::optional(*part + ", and the other program takes over none such")
                : std::nullopt;
}

/// With the reason behind the id.
std::vector<std::string> find_sessions(
    const session::Service& service, const Fronts& fronts, int format) {
    std::vector<std::string> sessions;
    if (format < kHandOverFormatOfSessions) {
        for (const auto& session : service.list()) {
            sessions.push_back(session->id() + " (the other program takes over no session)");
        }
        return sessions;
    }
    sessions = service.find_obstacles();
    for (const auto& session : service.list()) {
        if (const auto part = find_newer_part(*session, service, fronts, format)) {
            sessions.push_back(session->id() + " (" + *part + ")");
        }
    }
    return sessions;
}

}  // namespace

std::vector<std::string> find_in_the_way(
    const session::Service& service,
    Fronts& fronts,
    const jupyter::ZmqFront& zmq_front,
    int format) {
    std::vector<std::string> names = fronts.running_batches();
    const std::vector<std::string> sessions = find_sessions(service, fronts, format);
    names.insert(names.end(), sessions.begin(), sessions.end());
    if (format >= kHandOverFormatOfCommands && format < kHandOverFormatOfZmq) {
        const std::vector<std::string> connected = zmq_front.find_connected();
        names.insert(names.end(), connected.begin(), connected.end());
    }
    if (service.occupied() > service.list().size()) {
        names.emplace_back("a session that begins or ends");
    }
    if (service.preparing()) {
        names.emplace_back("the image that sessions run from");
    }
    // It is counted when nothing else is in the way.
    if (names.empty() && format >= kHandOverFormatOfSessions) {
        if (auto excess = find_excess(
                service.passed_bytes() + fronts.passed_bytes() + zmq_front.passed_bytes())) {
            names.push_back(*std::move(excess));
        }
    }
    return names;
}

std::vector<std::string> find_work(
    const session::Service& service, const Listeners& listeners, int format) {
    const bool runs_pass = format >= kHandOverFormatOfRuns;
    std::vector<std::string> names = service.find_work(runs_pass);
    if (runs_pass) {
        std::set<std::string> executions;
        for (const std::string& awaited : listeners.stuck()) {
            executions.insert(api::execution_of(awaited));
        }
        for (const std::string& id : executions) {
            names.push_back(id + " (a client waits for it on a connection that cannot pass)");
        }
    }
    return names;
}

}  // namespace cellkeep::cli
