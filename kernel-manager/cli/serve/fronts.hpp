// SPDX-License-Identifier: Apache-2.0
//
// What answers the clients of one server over HTTP and WebSocket: the session API with its history,
// Jupyter's REST API and channels, MCP, E2B's protocol, SWE-ReX. Each is a thin front end on the
// session service.
#pragma once

#include "kernel-manager/api/history.hpp"
#include "kernel-manager/api/routes/routes.hpp"
#include "kernel-manager/cli/serve/serve_plan.hpp"
#include "kernel-manager/e2b/front.hpp"
#include "kernel-manager/execution/operator_tools.hpp"
#include "kernel-manager/governance/approvals.hpp"
#include "kernel-manager/http/application.hpp"
#include "kernel-manager/jupyter/channels/channels_front.hpp"
#include "kernel-manager/jupyter/rest/rest_api.hpp"
#include "kernel-manager/mcp/front.hpp"
#include "kernel-manager/mcp/transport/http_endpoint.hpp"
#include "kernel-manager/preview/previews.hpp"
#include "kernel-manager/service/service.hpp"
#include "kernel-manager/store/store.hpp"
#include "kernel-manager/swerex/front.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::cli {

/// What the server remembers of sessions that ended.
struct OpenedStore {
    std::unique_ptr<store::Store> store;  // null without one: such a server must still serve
    std::string trouble;                  // why there is none although there should be
};

/// The operator's tools for code, and the calls of them that wait for a person; both may be null.
struct OfferedTools {
    std::shared_ptr<session::OperatorTools> broker;
    std::shared_ptr<governance::Approvals> approvals;
};

/// Runs on the loop's thread. Everything passed in outlives it.
class Fronts {
 public:
    /// Fails if the plan names a default kernel that the service does not have, or as
    /// e2b::Front::create().
    static Result<std::unique_ptr<Fronts>> create(
        boost::asio::io_context& io,
        const ServePlan& plan,
        session::Service& service,
        const OpenedStore& opened,
        OfferedTools tools);

    /// The routes of all of them.
    http::Application& application() { return application_; }

    /// Batches that have not finished, by their ids.
    std::vector<std::string> running_batches() const { return routes_.running_batches(); }

    /// What the session has that a program which reads that format takes over none of; nullopt:
    /// nothing.
    std::optional<std::string> find_newer_part(const session::Session& session, int format) const;

    /// Asks the clients that a pause leaves connected to connect again later.
    void part() { channels_.part(); }
    void end_parting() { channels_.end_parting(); }

    /// About what pass_on() gives, in bytes.
    std::size_t passed_bytes();
    /// What front ends know of sessions that pass to another program in the server's process,
    /// while they are there.
    nlohmann::json pass_on();
    /// Of another program, when its sessions are there. kProtocol for another form.
    /// Of E2B's sandboxes, tokens of ports and SWE-ReX's shells the log says if they are not of the
    /// form.
    Status go_on(const nlohmann::json& passed);

    /// Tells the clients of WebSockets that their kernels end, and ends the client sessions of MCP.
    void announce_shutdown();

 private:
    Fronts(
        boost::asio::io_context& io,
        const ServePlan& plan,
        session::Service& service,
        const OpenedStore& opened,
        OfferedTools tools,
        jupyter::RestConfig rest);
    void go_on_with_doors(const nlohmann::json& passed);

    const session::Service& service_;
    api::History history_;
    http::Application application_;
    preview::Previews previews_;
    api::Routes routes_;
    jupyter::RestApi rest_api_;
    jupyter::ChannelsFront channels_;
    mcp::Front mcp_front_;
    mcp::HttpEndpoint mcp_endpoint_;
    swerex::Front swerex_front_;
    std::unique_ptr<e2b::Front> e2b_front_;
};

}  // namespace cellkeep::cli
