// SPDX-License-Identifier: Apache-2.0
//
// One server, from its first part to its last: puts the parts together, runs the loop, and ends for
// a signal, for a failure, or for another program that takes its place. Owns all parts.
#pragma once

#include "kernel-manager/cli/preparing/environment_preparation.hpp"
#include "kernel-manager/cli/serve/environment_setup.hpp"
#include "kernel-manager/cli/serve/fronts.hpp"
#include "kernel-manager/cli/serve/listening.hpp"
#include "kernel-manager/cli/serve/serve_plan.hpp"
#include "kernel-manager/cli/serve/server_parts.hpp"
#include "kernel-manager/cli/serve/state_dir.hpp"
#include "kernel-manager/cli/upgrade/command_line.hpp"
#include "kernel-manager/cli/upgrade/hand_over.hpp"
#include "kernel-manager/cli/upgrade/upgrade.hpp"
#include "kernel-manager/cli/upgrade/upgrade_signal.hpp"
#include "kernel-manager/service/service.hpp"
#include "kernel-manager/session/passing/passed_sessions.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::cli {

class Server {
 public:
    /// before: what another program has left, or its sockets alone. The plan and the command line
    /// stay where they are.
    static Result<std::unique_ptr<Server>> create(
        const ServePlan& plan, const CommandLine& line, HandOver before);
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;
    ~Server() = default;

    /// Serves until everything has ended. Returns what the program gets that takes over; nothing:
    /// none does. Once.
    Result<std::optional<HandOver>> run();

 private:
    Server(const ServePlan& plan, const CommandLine& line, StateDir state_dir);
    Status make_parts(HandOver before);
    Status begin();
    Status announce();
    void begin_preparing();
    void fail(Error error);
    void stop();
    void end();
    void look_for_late_signal();
    Status leave(int format);
    ProgramCheck make_check() const;
    Upgrade::Hooks upgrade_hooks();
    HandOver make_hand_over();

    const ServePlan& plan_;
    const CommandLine& line_;
    StateDir state_dir_;
    /// Before the store, whose last questions are answered into it when the store goes.
    boost::asio::io_context io_{1};
    OpenedStore opened_;
    std::unique_ptr<jupyter::ZmqFront> zmq_front_;
    std::optional<ServiceStart> start_;
    Providers providers_;
    std::unique_ptr<session::Service> service_;
    std::unique_ptr<Fronts> fronts_;
    std::optional<Listeners> listeners_;
    std::shared_ptr<session::EnvironmentArrivals> arrivals_;
    std::shared_ptr<EnvironmentPreparation> preparation_;
    std::shared_ptr<Upgrade> upgrade_;
    std::shared_ptr<UpgradeSignal> upgrade_signal_;
    boost::asio::signal_set signals_{io_};
    bool is_first_ = true;        // no program was here before
    std::uint64_t upgrades_ = 0;  // of this process
    bool stopped_ = false;
    std::optional<Error> failure_;
    std::optional<InheritedSockets> passed_;  // to the program that takes over, and:
    session::PassedSessions passed_sessions_;
    session::SharedParts shared_;
    int format_ = kHandOverFormat;
};

}  // namespace cellkeep::cli
