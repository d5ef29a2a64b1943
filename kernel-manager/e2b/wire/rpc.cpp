// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/wire/rpc.hpp"

#include "kernel-manager/e2b/limits.hpp"
#include "kernel-manager/e2b/wire/body_reading.hpp"
#include "kernel-manager/e2b/wire/connect_stream.hpp"
#include "kernel-manager/e2b/wire/sandbox_place.hpp"
#include "kernel-manager/http/message/problem.hpp"
#include "kernel-manager/http/message/text_reading.hpp"
#include "protocol/support/text.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace cellkeep::e2b {

using RpcAnswer = boost::asio::awaitable<http::Response>;

std::string rpc_pattern(const std::string& method) {
    return "/" + std::string(kSandboxSegment) + "/{id}/" + std::to_string(kEnvdPort) + "/" + method;
}

std::optional<http::Response> refuse_media_type(
    const http::Request& request, std::string_view wanted) {
    const std::string_view type = request.headers.get("Content-Type");
    if (http::equals_ignoring_case(trim(type.substr(0, type.find(';'))), wanted)) {
        return std::nullopt;
    }
    return http::to_response(
        http::make_problem(415, "Send this request as " + std::string(wanted) + "."));
}

http::Response rpc_problem(const Error& error) {
    if (error.code() != ErrorCode::kConflict) {
        return http::to_response(http::problem_from(error));
    }
    const int status = error.field() == kTakenPath ? 409 : 412;
    return http::to_response(http::make_problem(status, std::string(error.reason())));
}

void add_unary(
    http::Router& router, const SandboxDoor& door, const std::string& method, UnaryRpc answer) {
    auto handler = [answer = std::move(answer)](
                       http::Request& request, RpcSession session) -> RpcAnswer {
        if (auto refused = refuse_media_type(request, "application/json")) {
            co_return std::move(*refused);
        }
        BodyReader<nlohmann::json> read = [](const nlohmann::json& parsed) {
            return Result<nlohmann::json>(parsed);
        };
        auto body = co_await read_body<nlohmann::json>(request, std::move(read));
        if (body.has_error()) {
            co_return rpc_problem(body.error());
        }
        if (!body.value().is_object()) {
            co_return http::to_response(http::make_problem(400, "The body must be an object."));
        }
        const auto done = co_await answer(std::move(session), std::move(body).value());
        co_return done.has_error() ? rpc_problem(done.error()) : http::make_json(200, done.value());
    };
    http::Route route(
        http::Access::kChange, "POST", rpc_pattern(method), door.with_session(std::move(handler)));
    route.body_bytes_max = kMessageBytesMax;
    router.add(std::move(route));
}

boost::asio::awaitable<Result<nlohmann::json>> take_only_message(http::Request& request) {
    http::TextReader<Result<nlohmann::json>> read = [](const std::string& body) {
        return read_only_message(body);
    };
    auto message = co_await http::read_body<Result<nlohmann::json>>(request, std::move(read));
    co_return message;
}

http::Response stream_head() {
    http::Response response;
    response.headers.add("Content-Type", "application/connect+json");
    // Proxies that gather answers before they pass them on are asked not to.
    response.headers.add("X-Accel-Buffering", "no");
    return response;
}

std::chrono::seconds wanted_beat(const http::Request& request) {
    const std::string_view text = request.headers.get("Keepalive-Ping-Interval");
    std::int64_t seconds = 0;
    const char* end = text.data() + text.size();
    const auto [stop, failed] = std::from_chars(text.data(), end, seconds);
    const bool plain = !text.empty() && failed == std::errc() && stop == end;
    return std::clamp(plain ? std::chrono::seconds(seconds) : kCommandBeat, kBeatMin, kBeatMax);
}

}  // namespace cellkeep::e2b
