// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/preview/previews.hpp"

#include "kernel-manager/http/access/host_field.hpp"
#include "kernel-manager/http/access/principal.hpp"
#include "kernel-manager/http/message/problem.hpp"
#include "kernel-manager/preview/forwarding.hpp"
#include "kernel-manager/preview/inner_connection.hpp"
#include "kernel-manager/preview/preview_exchange.hpp"

#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace cellkeep::preview {

namespace asio = boost::asio;
using Identified = http::Application::Identified;

namespace {

http::Response secret_problem() {
    return http::to_response(http::make_problem(
        400,
        "The address holds a token of this server, which a page of the session could read. Send it "
        "as \"Authorization: Bearer TOKEN\", or open the address that a token of the port comes "
        "with."));
}

/// A dotted or bracketed address: there are no names below it.
bool is_numeric(std::string_view host) {
    return host.starts_with('[') || std::all_of(host.begin(), host.end(), [](char c) {
               return (c >= '0' && c <= '9') || c == '.';
           });
}

}  // namespace

/// One connection of a session, while it lives; the Previews may go before it.
struct Previews::Taken {
    Taken(std::shared_ptr<Open> all, std::string id)
        : open(std::move(all)), session_id(std::move(id)) {
        (*open)[session_id].insert(this);
    }
    Taken(const Taken&) = delete;
    Taken& operator=(const Taken&) = delete;
    ~Taken() {
        const auto found = open->find(session_id);
        found->second.erase(this);
        if (found->second.empty()) {
            open->erase(found);
        }
    }
    const std::shared_ptr<Open> open;
    const std::string session_id;
    std::weak_ptr<InnerConnection> connection;  // once there is one
};

Previews::Previews(const http::TokenAuth& auth, PreviewConfig config)
    : auth_(auth), config_(std::move(config)) {}

IsSecret Previews::secrets() const {
    return [&auth = auth_](std::string_view text) {
        return !text.empty() && auth.find(text).has_value();
    };
}

std::optional<Identified> Previews::identify(
    const http::Request& request,
    const std::string& session_id,
    std::uint16_t port,
    const std::string& owner) const {
    const auto now = PreviewTokens::Clock::now();
    const auto fits = [&](std::string_view token) {
        return tokens_.find(session_id, port, token, now) != nullptr;
    };
    const http::Principal bearer{owner, http::Role::kAgent};
    if (fits(request.headers.get(kTokenHeader))) {
        return Identified(bearer);
    }
    const auto usable = [&owner](const std::optional<http::Principal>& principal) {
        return principal && http::may_see(*principal, owner) && http::may_change(*principal);
    };
    if (const std::string token = header_token(request); !token.empty()) {
        if (const auto principal = auth_.find(token); usable(principal)) {
            return Identified(*principal);
        }
    }
    const auto parameter = request.target.find_query(kTokenParameter);
    const auto cookies = parameter ? std::vector{*parameter} : preview_cookies(request);
    const bool shown = std::any_of(cookies.begin(), cookies.end(), fits);
    return shown ? std::optional(Identified(bearer, false)) : std::nullopt;
}

std::shared_ptr<Previews::Taken> Previews::take_connection(const std::string& session_id) {
    return connections(session_id) < kPreviewConnectionsMax
               ? std::make_shared<Taken>(open_, session_id)
               : nullptr;
}

std::size_t Previews::connections(const std::string& session_id) const {
    const auto found = open_->find(session_id);
    return found == open_->end() ? 0 : found->second.size();
}

/// A browser that comes with a token in the address gets a cookie for this host instead, so that
/// the address that it shows and keeps has none.
std::optional<http::Response> Previews::enter_with_token(
    const http::Request& request, const PreviewPlace& place, const std::string& session_id) const {
    const auto token = request.target.find_query(kTokenParameter);
    if (!token || !place.own_host || request.websocket ||
        (request.method != "GET" && request.method != "HEAD")) {
        return std::nullopt;
    }
    const auto now = PreviewTokens::Clock::now();
    const PreviewTokens::Info* info = tokens_.find(session_id, place.port, *token, now);
    if (info == nullptr) {
        return std::nullopt;
    }
    if (place.target.starts_with("//")) {
        return http::to_response(
            http::make_problem(400, "A path may not begin with two slashes here."));
    }
    const auto left = std::chrono::duration_cast<std::chrono::seconds>(info->expires_at - now);
    http::Response response = http::make_empty(302);
    response.foreign = true;  // the path is of the server inside, not below the base URL
    response.headers.add("Location", place.target);
    response.headers.add(
        "Set-Cookie",
        std::string(kTokenCookie) + "=" + *token + "; Path=/; HttpOnly; SameSite=Lax; Max-Age=" +
            std::to_string(left.count()) + (config_.tls ? "; Secure" : ""));
    response.headers.add("Cache-Control", "no-store");
    response.headers.add("Referrer-Policy", "no-referrer");
    return response;
}

void Previews::note_opened(
    const http::Request& request, const std::string& session_id, std::uint16_t port) {
    auto& ports = opened_[session_id];
    if (ports.size() < kPreviewPortsLoggedMax && ports.insert(port).second && config_.log_opened) {
        config_.log_opened({session_id, port, request.principal.name});
    }
}

asio::awaitable<http::Response> Previews::serve(
    http::Request& request, SessionPtr session, std::uint16_t port, std::size_t own_segments) {
    const std::string session_id = session->id();
    if (!request.websocket && address_holds_secret(request, secrets())) {
        co_return secret_problem();
    }
    const PreviewPlace place = find_place(request, session_id, port, own_segments, secrets());
    if (auto entered = enter_with_token(request, place, session_id)) {
        co_return std::move(*entered);
    }
    const auto taken = take_connection(session_id);
    if (taken == nullptr) {
        co_return http::to_response(http::make_problem(
            429,
            "too-many-connections",
            "Too many connections into the session",
            "The session has its " + std::to_string(kPreviewConnectionsMax) +
                " connections to servers inside."));
    }
    auto socket = co_await session->connect_port(port);
    if (socket.has_error()) {
        co_return connect_problem(socket.error(), port);
    }
    const auto executor = co_await asio::this_coro::executor;
    auto inner = InnerConnection::create(
        executor, std::move(socket).value(), std::move(session), taken, config_.patience);
    if (inner.has_error()) {
        co_return http::to_response(http::problem_from(inner.error()));
    }
    taken->connection = inner.value();
    note_opened(request, session_id, port);
    std::string head =
        make_inner_head(request, place, framing_of(request), public_scheme(), secrets());
    std::shared_ptr<InnerConnection> connection = std::move(inner).value();
    http::Response response =
        co_await exchange(request, place, std::move(connection), std::move(head));
    co_return response;
}

std::optional<std::string> Previews::public_url(
    const http::Request& request,
    const std::string& session_id,
    std::uint16_t port,
    const std::string& token) const {
    const std::string_view field = request.headers.get("Host");
    const auto host = http::host_of(field);
    if (!host || host->empty()) {
        return std::nullopt;
    }
    std::string name(*host);
    if (name == "127.0.0.1" || name == "[::1]") {
        name = "localhost";
    } else if (is_numeric(name)) {
        return std::nullopt;
    }
    const std::string url = std::string(public_scheme()) + "://" + std::to_string(port) + "-" +
                            std::string(id_in_hosts(session_id)) + "." + name +
                            std::string(field.substr(host->size())) + "/";
    return token.empty() ? url : url + "?" + std::string(kTokenParameter) + "=" + token;
}

Status Previews::on_session_created(const SessionPtr& /*session*/) {
    return ok();
}

void Previews::on_session_closed(const std::string& session_id) {
    tokens_.forget(session_id);
    opened_.erase(session_id);
    // What is inside may live on in a branch, which has the parent's sockets.
    std::vector<std::shared_ptr<InnerConnection>> connections;
    if (const auto open = open_->find(session_id); open != open_->end()) {
        for (const Taken* taken : open->second) {
            connections.push_back(taken->connection.lock());
        }
    }
    for (const auto& connection : connections) {
        if (connection != nullptr) {
            connection->close();
        }
    }
}

http::Response connect_problem(const Error& error, std::uint16_t port) {
    const std::string name = std::to_string(port);
    switch (error.code()) {
        case ErrorCode::kNotFound:
            return http::to_response(http::make_problem(
                502,
                "port-not-open",
                "The port is not open",
                "The sandbox is running but port is not open: nothing in it listens at 127.0.0.1:" +
                    name + " or [::1]:" + name + "."));
        case ErrorCode::kPermissionDenied:
            return http::to_response(http::make_problem(
                403,
                "port-reserved",
                "The port is the sandbox's own",
                "Port " + name + " is the sandbox's own. Let the server listen at another one."));
        case ErrorCode::kTimeout:
            return http::to_response(http::make_problem(
                504,
                "port-timeout",
                "The server inside is silent",
                "The server at port " + name + " does not accept the connection."));
        default:
            return http::to_response(http::problem_from(error));
    }
}

}  // namespace cellkeep::preview
