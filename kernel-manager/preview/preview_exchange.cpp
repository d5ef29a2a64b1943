// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/preview/preview_exchange.hpp"

#include "kernel-manager/http/message/problem.hpp"
#include "kernel-manager/preview/forwarding.hpp"
#include "kernel-manager/preview/preview_tunnel.hpp"

#include <array>
#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>

namespace cellkeep::preview {

namespace asio = boost::asio;

namespace {

constexpr int kSwitchingProtocols = 101;
constexpr int kNoContent = 204;
constexpr int kNotModified = 304;
constexpr std::string_view kLastChunk = "0\r\n\r\n";

using InnerPtr = std::shared_ptr<InnerConnection>;

http::Response inner_problem(const Error& error) {
    switch (error.code()) {
        case ErrorCode::kTimeout:
            return http::to_response(http::make_problem(
                504, "port-timeout", "The server inside is silent", error.message()));
        case ErrorCode::kLimitExceeded:
        case ErrorCode::kProtocol:
            return http::to_response(http::make_problem(
                502,
                "port-protocol",
                "The server inside answers no HTTP",
                "The answer of the server inside: " + error.message() + "."));
        default:
            return http::to_response(http::make_problem(
                502, "port-protocol", "The server inside gives no answer", error.message()));
    }
}

/// A body that the visitor does not send as it said.
http::Response body_problem(const Error& error) {
    switch (error.code()) {
        case ErrorCode::kLimitExceeded:
            return http::to_response(http::make_problem(
                413,
                "The body is longer than the " + std::to_string(kPreviewBodyBytesMax) +
                    " bytes allowed here."));
        case ErrorCode::kTimeout:
            return http::to_response(http::make_problem(408, error.message()));
        default:
            return http::to_response(http::make_problem(400, error.message()));
    }
}

std::string chunk_of(std::string_view piece) {
    std::array<char, 20> size{};
    const int length = std::snprintf(size.data(), size.size(), "%zx\r\n", piece.size());
    std::string chunk(size.data(), static_cast<std::size_t>(length));
    chunk += piece;
    return chunk + "\r\n";
}

/// A server may answer before it has taken everything: then its answer counts, and nothing more of
/// the body is sent. Returns the problem of a body that does not come.
asio::awaitable<std::optional<http::Response>> pass_request_body(
    http::Request& request, InnerPtr inner) {
    const bool chunked = framing_of(request).kind == InnerFraming::Kind::kChunked;
    bool taken = true;
    while (taken && !inner->has_spoken()) {
        const auto piece = co_await request.stream->read();
        if (piece.has_error()) {
            inner->close();
            co_return body_problem(piece.error());
        }
        if (piece.value().empty()) {
            if (chunked) {
                (void)co_await inner->send(kLastChunk);  // Ignored: then the answer says more.
            }
            co_return std::nullopt;
        }
        const std::string framed = chunked ? chunk_of(piece.value()) : std::string(piece.value());
        const Status sent = co_await inner->send(framed);
        taken = sent.has_value();
    }
    co_return std::nullopt;
}

asio::awaitable<Status> write_answer(http::BodyWriter& writer, InnerPtr inner) {
    writer.watch([weak = std::weak_ptr(inner)] {
        if (const auto connection = weak.lock()) {
            connection->close();
        }
    });
    Status status = ok();
    while (status.has_value()) {
        auto piece = co_await inner->read_body();
        if (piece.has_error()) {
            status = piece.error();  // cut short: the visitor sees that it is not whole
        } else if (piece.value().empty()) {
            break;
        } else {
            status = co_await writer.write(piece.value());
        }
    }
    writer.watch({});
    inner->close();
    co_return status;
}

http::Response switch_protocols(
    const http::Request& request, const PreviewPlace& place, InnerPtr inner) {
    auto headers = request.websocket ? make_switch_headers(inner->answer().head(), place)
                                     : std::optional<http::Headers>();
    if (!headers) {
        inner->close();
        return inner_problem(
            Error(ErrorCode::kProtocol, "it changes to a protocol that was not asked for"));
    }
    http::Response response;
    response.status = kSwitchingProtocols;
    response.foreign = true;
    response.headers = std::move(*headers);
    response.body =
        http::TunnelBody{[inner = std::move(inner)](std::shared_ptr<http::ByteStream> visitor) {
            return relay(std::move(visitor), inner);
        }};
    return response;
}

http::Response answer_of(const http::Request& request, const PreviewPlace& place, InnerPtr inner) {
    const egress::MessageReader& answer = inner->answer();
    auto headers = make_outer_headers(answer.head(), place, request.headers.get("Host"));
    if (!headers) {
        inner->close();
        return http::to_response(http::make_problem(
            502,
            "port-redirect",
            "The server inside sends its visitors to this server",
            "The server inside answers with a Location that leads to this server's own "
            "addresses, or that clients read in different ways."));
    }
    http::Response response;
    response.status = answer.head().status;
    response.foreign = true;
    response.headers = std::move(*headers);
    const bool has_none = response.status == kNoContent || response.status == kNotModified ||
                          (request.method != "HEAD" && !answer.has_body());
    if (has_none) {
        inner->close();
        return response;
    }
    http::StreamBody body;
    body.length = answer.content_length();
    body.run = [inner = std::move(inner)](http::BodyWriter& writer) {
        return write_answer(writer, inner);
    };
    response.body = std::move(body);
    return response;
}

}  // namespace

asio::awaitable<http::Response> exchange(
    http::Request& request, const PreviewPlace& place, InnerPtr inner, std::string head) {
    const Status sent = co_await inner->send(head);
    if (sent.has_value() && request.stream != nullptr &&
        framing_of(request).kind != InnerFraming::Kind::kNone) {
        InnerPtr shared = inner;
        auto failed = co_await pass_request_body(request, std::move(shared));
        if (failed) {
            co_return std::move(*failed);
        }
    }
    if (request.client != nullptr) {
        request.client->watch([weak = std::weak_ptr(inner)] {
            if (const auto connection = weak.lock()) {
                connection->close();
            }
        });
    }
    const Status read = co_await inner->read_head(request.method == "HEAD");
    if (request.client != nullptr) {
        request.client->watch({});
    }
    if (read.has_error()) {
        inner->close();
        co_return inner_problem(read.error());
    }
    co_return inner->answer().head().status == kSwitchingProtocols
        ? switch_protocols(request, place, std::move(inner))
        : answer_of(request, place, std::move(inner));
}

}  // namespace cellkeep::preview
