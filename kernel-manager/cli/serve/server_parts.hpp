// SPDX-License-Identifier: Apache-2.0
//
// The parts that `cellkeep serve` is put together from, each made of what the plan says.
#pragma once

#include "kernel-manager/cli/serve/fronts.hpp"
#include "kernel-manager/cli/serve/serve_plan.hpp"
#include "kernel-manager/cli/serve/service_setup.hpp"
#include "kernel-manager/cli/serve/tools_setup.hpp"
#include "kernel-manager/cli/upgrade/inherited_sockets.hpp"
#include "kernel-manager/egress/egress_service.hpp"
#include "kernel-manager/jupyter/zmq/zmq_front.hpp"
#include "kernel-manager/session/passing/passed_sessions.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/io_context.hpp>

#include <memory>
#include <string>

namespace cellkeep::cli {

/// What every session needs, and the kernels that are made in advance.
Result<ServiceStart> plan_service(const ServePlan& plan);

/// The store of the state directory, unless the plan wants none.
OpenedStore open_store(const ServePlan& plan, const std::string& directory);

/// before: what the program before has left of its front is taken out.
Result<std::unique_ptr<jupyter::ZmqFront>> make_zmq_front(
    boost::asio::io_context& io,
    const ServePlan& plan,
    std::string directory,
    session::PassedSessions& before);
/// The front's sockets are closed; what another program needs is put in. Behind Fronts::pass_on().
void pass_zmq(jupyter::ZmqFront& front, session::PassedSessions& passed);

/// The connections that wait for an answer go from the sockets to what front ends know, and back.
/// Behind Fronts::pass_on(). kProtocol for another form.
void pass_awaiting(InheritedSockets& sockets, session::PassedSessions& passed);
Status take_awaiting(session::PassedSessions& before, InheritedSockets& sockets);

/// What sessions may use outside their sandboxes.
struct Providers {
    std::shared_ptr<egress::EgressService> egress;  // null: no network
    std::unique_ptr<ToolsSetup> tools;
};

/// before: what sessions of the program before trust is taken out.
Result<Providers> make_providers(
    boost::asio::io_context& io,
    const ServePlan& plan,
    const std::string& directory,
    session::PassedSessions& before);
/// What sessions trust is put in for another program.
Status pass_providers(const Providers& providers, session::PassedSessions& passed);

}  // namespace cellkeep::cli
