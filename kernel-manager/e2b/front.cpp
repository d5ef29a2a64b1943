// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/front.hpp"

#include "kernel-manager/e2b/envd/file_routes.hpp"
#include "kernel-manager/e2b/envd/filesystem_routes.hpp"
#include "kernel-manager/e2b/envd/process_routes.hpp"
#include "kernel-manager/e2b/wire/error_style.hpp"
#include "kernel-manager/e2b/wire/rpc.hpp"
#include "kernel-manager/e2b/wire/sandbox_place.hpp"
#include "kernel-manager/http/message/problem.hpp"

#include <utility>

namespace cellkeep::e2b {

namespace {

/// Addresses of a sandbox's other ports: no requests are passed into it.
void add_closed_ports(http::Router& router, const SandboxDoor& door) {
    const auto closed = [](http::Request& request,
                           RpcSession session) -> boost::asio::awaitable<http::Response> {
        const std::string port = request.capture("port");
        if (port == std::to_string(kEnvdPort) || port == std::to_string(kInterpreterPort)) {
            co_return http::to_response(
                http::make_problem(404, "There is no such address in a sandbox."));
        }
        co_return http::make_json(
            502,
            {{"sandboxId", sandbox_id_of(session->id())},
             {"message",
              "The sandbox is running but port is not open: this server passes no requests to "
              "ports of sandboxes."},
             {"port", port},
             {"code", 502}});
    };
    const std::string port = "/" + std::string(kSandboxSegment) + "/{id}/{port}";
    for (const std::string& pattern : {port, port + "/", port + "/{rest...}"}) {
        router.add({http::Access::kRead, "GET", pattern, door.with_session(closed)});
        router.add({http::Access::kChange, "POST", pattern, door.with_session(closed)});
    }
}

}  // namespace

Result<std::unique_ptr<Front>> Front::create(
    boost::asio::io_context& io,
    session::SessionService& service,
    std::vector<egress::AllowedHost> reachable) {
    BOOST_OUTCOME_TRY(const SandboxTokens tokens, SandboxTokens::create());
    return std::unique_ptr<Front>(new Front(io, service, tokens, std::move(reachable)));
}

Front::Front(
    boost::asio::io_context& io,
    session::SessionService& service,
    const SandboxTokens& tokens,
    std::vector<egress::AllowedHost> reachable)
    : tokens_(tokens),
      book_(io, service),
      door_(book_, tokens_),
      control_(service, book_, tokens_, std::move(reachable)),
      interpreter_(door_) {}

void Front::add_to(http::Application& application) {
    http::Router& router = application.router();
    control_.add_to(router);
    add_process_rpcs(router, door_);
    add_filesystem_rpcs(router, door_);
    add_envd_files(router, door_);
    interpreter_.add_to(router);
    add_closed_ports(router, door_);
    const std::string segment(kSandboxSegment);
    application.set_doorway({enter_by_host, enter_by_header});
    application.set_credentials(
        segment, [this](const http::Request& request) { return door_.identify(request); });
    application.set_error_style(segment, rewrite_for_sandbox);
    for (const char* first :
         {"sandboxes", "v2", "v3", "templates", "snapshots", "volumes", "secrets"}) {
        application.set_error_style(first, rewrite_for_control);
    }
}

Status Front::on_session_created(const std::shared_ptr<session::Session>& session) {
    return book_.on_session_created(session);
}

void Front::on_session_closed(const std::string& session_id) {
    book_.on_session_closed(session_id);
    interpreter_.forget(session_id);
}

}  // namespace cellkeep::e2b
