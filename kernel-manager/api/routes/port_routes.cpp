// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/routes/port_routes.hpp"

#include "kernel-manager/api/bodies/object_reader.hpp"
#include "kernel-manager/api/bodies/order_reading.hpp"
#include "kernel-manager/http/message/problem.hpp"
#include "kernel-manager/preview/limits.hpp"
#include "protocol/support/time.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <utility>

namespace cellkeep::api {

namespace {

using Answer = boost::asio::awaitable<http::Response>;
using Session = SessionLookup::Session;
using preview::PreviewTokens;

/// v1, sessions, the session, ports, the port.
constexpr std::size_t kPortSegments = 5;

using PortHandler = std::function<Answer(http::Request&, Session, std::uint16_t)>;

http::Handler with_port(const SessionLookup& lookup, PortHandler handler) {
    return lookup.with_session(
        [handler = std::move(handler)](http::Request& request, Session session) -> Answer {
            const auto port = preview::parse_port(request.capture("port"));
            if (!port) {
                co_return http::to_response(
                    http::make_problem(404, "A port is a number from 1 to 65535."));
            }
            http::Response answer = co_await handler(request, std::move(session), *port);
            co_return answer;
        });
}

std::chrono::seconds parse_token_order(const nlohmann::json& body, FieldErrors& errors) {
    ObjectReader reader(body, "", errors);
    IntegerBounds bounds;
    bounds.minimum = 1;
    bounds.maximum = static_cast<std::uint64_t>(preview::kPreviewTokenTimeMax.count());
    const auto asked = reader.integer("expires_in_s", bounds);
    reader.finish();
    return asked ? std::chrono::seconds(static_cast<std::int64_t>(*asked))
                 : preview::kPreviewTokenTimeDefault;
}

nlohmann::json token_json(const PreviewTokens::Info& info) {
    return {
        {"token_id", info.id}, {"port", info.port}, {"expires_at", to_iso8601(info.expires_at)}};
}

nlohmann::json url_json(const std::optional<std::string>& url) {
    return url ? nlohmann::json(*url) : nlohmann::json(nullptr);
}

Answer issue_token(
    http::Request& request, Session session, std::uint16_t port, preview::Previews& previews) {
    OrderReader<std::chrono::seconds> read = parse_token_order;
    auto body =
        co_await read_order<std::chrono::seconds>(request, EmptyBody::kAllowed, std::move(read));
    if (body.problem) {
        co_return http::to_response(*body.problem);
    }
    // The tokens of a session that has ended meanwhile are forgotten already.
    if (const auto files = session->workspace(); files.has_error()) {
        co_return http::to_response(http::problem_from(files.error()));
    }
    session->touch();
    const auto issued =
        previews.tokens().issue(session->id(), port, body.order, PreviewTokens::Clock::now());
    if (issued.has_error()) {
        co_return http::to_response(http::problem_from(issued.error()));
    }
    nlohmann::json answer = token_json(issued.value().info);
    answer["token"] = issued.value().token;
    answer["url"] =
        url_json(previews.public_url(request, session->id(), port, issued.value().token));
    co_return http::make_json(201, answer);
}

Answer list_tokens(
    http::Request& request, Session session, std::uint16_t port, preview::Previews& previews) {
    nlohmann::json tokens = nlohmann::json::array();
    const auto now = PreviewTokens::Clock::now();
    for (const auto& info : previews.tokens().list(session->id(), port, now)) {
        tokens.push_back(token_json(info));
    }
    const auto url = previews.public_url(request, session->id(), port, "");
    co_return http::make_json(200, {{"tokens", std::move(tokens)}, {"url", url_json(url)}});
}

Answer revoke_token(
    http::Request& request, Session session, std::uint16_t port, preview::Previews& previews) {
    const Status revoked = previews.tokens().revoke(session->id(), port, request.capture("token"));
    co_return revoked.has_error() ? http::to_response(http::problem_from(revoked.error()))
                                  : http::make_empty(204);
}

}  // namespace

void add_port_routes(
    http::Router& router, const SessionLookup& lookup, preview::Previews& previews) {
    using http::Access;
    using TokenHandler = Answer (*)(http::Request&, Session, std::uint16_t, preview::Previews&);
    const std::string port = "/v1/sessions/{id}/ports/{port}";
    const auto bound = [&](TokenHandler handler) {
        return with_port(
            lookup, [handler, &previews](http::Request& request, Session session, std::uint16_t n) {
                return handler(request, std::move(session), n, previews);
            });
    };
    router.add({Access::kChange, "POST", port + "/tokens", bound(issue_token)});
    router.add(
        http::Route(Access::kRead, "GET", port + "/tokens", bound(list_tokens)).without_body());
    router.add(http::Route(Access::kChange, "DELETE", port + "/tokens/{token}", bound(revoke_token))
                   .without_body());
    const auto pass = [&previews](http::Request& request, Session session, std::uint16_t number) {
        return previews.serve(request, std::move(session), number, kPortSegments);
    };
    // An observer may not ask a server inside, which may do anything for a GET.
    for (const char* method : {"GET", "POST", "PUT", "PATCH", "DELETE"}) {
        for (const std::string& pattern : {port + "/", port + "/{path...}"}) {
            http::Route route(Access::kChange, method, pattern, with_port(lookup, pass));
            route.body_mode = http::BodyMode::kStreamed;
            route.body_bytes_max = preview::kPreviewBodyBytesMax;
            router.add(std::move(route));
        }
    }
}

}  // namespace cellkeep::api
