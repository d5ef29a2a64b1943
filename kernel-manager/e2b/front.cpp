// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/front.hpp"

#include "kernel-manager/e2b/envd/file_routes.hpp"
#include "kernel-manager/e2b/envd/filesystem_routes.hpp"
#include "kernel-manager/e2b/envd/process_routes.hpp"
#include "kernel-manager/e2b/envd/watch_routes.hpp"
#include "kernel-manager/e2b/passing/passed_sandboxes.hpp"
#include "kernel-manager/e2b/wire/error_style.hpp"
#include "kernel-manager/e2b/wire/rpc.hpp"
#include "kernel-manager/e2b/wire/sandbox_place.hpp"
#include "kernel-manager/http/message/problem.hpp"
#include "kernel-manager/process/command_table.hpp"

#include <utility>

namespace cellkeep::e2b {

namespace {

/// e2b, the sandbox, the port.
constexpr std::size_t kPortPlaceSegments = 3;

http::Response no_such_address() {
    return http::to_response(http::make_problem(404, "There is no such address in a sandbox."));
}

/// Addresses of a sandbox's other ports: what listens there answers.
void add_other_ports(http::Router& router, const SandboxDoor& door, preview::Previews& previews) {
    const auto pass = [&previews](
                          http::Request& request,
                          RpcSession session) -> boost::asio::awaitable<http::Response> {
        const auto port = preview::parse_port(request.capture("port"));
        if (!port || *port == kEnvdPort || *port == kInterpreterPort) {
            co_return no_such_address();
        }
        http::Response answer =
            co_await previews.serve(request, std::move(session), *port, kPortPlaceSegments);
        co_return answer;
    };
    const std::string port = "/" + std::string(kSandboxSegment) + "/{id}/{port}";
    for (const char* method : {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}) {
        for (const std::string& pattern : {port, port + "/", port + "/{rest...}"}) {
            http::Route route(http::Access::kChange, method, pattern, door.with_session(pass));
            route.body_mode = http::BodyMode::kStreamed;
            route.body_bytes_max = preview::kPreviewBodyBytesMax;
            router.add(std::move(route));
        }
    }
}

}  // namespace

Result<std::unique_ptr<Front>> Front::create(
    boost::asio::io_context& io,
    session::SessionService& service,
    preview::Previews& previews,
    FrontOptions options) {
    BOOST_OUTCOME_TRY(const SandboxTokens tokens, SandboxTokens::create());
    return std::unique_ptr<Front>(new Front(io, service, previews, tokens, std::move(options)));
}

Front::Front(
    boost::asio::io_context& io,
    session::SessionService& service,
    preview::Previews& previews,
    const SandboxTokens& tokens,
    FrontOptions options)
    : service_(service),
      previews_(previews),
      tokens_(tokens),
      book_(io, service),
      debug_(io, service, book_),
      door_(book_, tokens_, previews, options.debug ? &debug_ : nullptr),
      control_(
          service, book_, snapshots_, tokens_, {std::move(options.reachable), options.snapshots}),
      interpreter_(door_),
      deadlines_(io) {}

void Front::add_to(http::Application& application) {
    http::Router& router = application.router();
    control_.add_to(router);
    add_process_rpcs(router, door_, {streams_, deadlines_});
    add_filesystem_rpcs(router, door_);
    add_watch_rpcs(router, door_, watchers_, streams_);
    add_envd_files(router, door_);
    interpreter_.add_to(router);
    add_other_ports(router, door_, previews_);
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
    snapshots_.forget_session(session_id);
    interpreter_.forget(session_id);
    watchers_.forget(session_id);
}

std::optional<std::string> Front::find_obstacle(const session::Session& session) const {
    if (watchers_.any(session.id())) {
        return "a client of E2B's watches its files";
    }
    return streams_.any(session.id())
               ? std::optional<std::string>("a stream of a client of E2B's is open")
               : std::nullopt;
}

nlohmann::json Front::write() const {
    return write_sandboxes(
        {.token_key = tokens_.key(),
         .records = book_.records(),
         .contexts = interpreter_.contexts().all(),
         .snapshots = snapshots_.all(),
         .keys = control_.idempotency().pass_on(),
         .debug_session = debug_.session_id(),
         .deadlines = deadlines_.list()});
}

std::size_t Front::passed_bytes() const {
    return nlohmann::json::to_cbor(write()).size();
}

nlohmann::json Front::pass_on() {
    nlohmann::json passed = write();
    book_.leave();
    deadlines_.leave();
    return passed;
}

Status Front::go_on(const nlohmann::json& passed) {
    BOOST_OUTCOME_TRY(PassedSandboxes before, read_sandboxes(passed));
    keep_only(before, [this](const std::string& id) { return service_.find(id) != nullptr; });
    BOOST_OUTCOME_TRY(tokens_.use_key(before.token_key));
    book_.go_on(std::move(before.records));
    interpreter_.contexts().go_on(std::move(before.contexts));
    snapshots_.go_on(std::move(before.snapshots));
    control_.idempotency().go_on(before.keys);
    debug_.go_on(std::move(before.debug_session));
    for (const PassedDeadline& one : before.deadlines) {
        const auto session = service_.find(one.session_id);
        const process::CommandTable* const table = session->commands();
        if (const auto command = table == nullptr ? nullptr : table->find(one.command_id)) {
            deadlines_.set(session, command, one.due);
        }
    }
    return ok();
}

}  // namespace cellkeep::e2b
