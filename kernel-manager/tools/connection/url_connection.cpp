// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/tools/connection/url_connection.hpp"

#include "kernel-manager/tools/connection/event_lines.hpp"
#include "kernel-manager/tools/connection/exchange.hpp"
#include "kernel-manager/tools/limits.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace cellkeep::tools {

namespace asio = boost::asio;

namespace {

constexpr std::uint16_t kPlainPort = 80;
constexpr std::uint16_t kTlsPort = 443;
constexpr int kStatusOk = 200;
constexpr int kStatusSuccessEnd = 300;
constexpr int kStatusNotFound = 404;
constexpr std::string_view kSessionHeader = "Mcp-Session-Id";
constexpr std::size_t kSessionIdBytesMax = 512;

bool has_type(const egress::MessageHead& head, std::string_view type) {
    const auto types = egress::values_of(head, "Content-Type");
    return types.size() == 1 && types.front().starts_with(type);
}

/// Whether the body of a refused request is the protocol's own refusal of it. An error that was
/// found before the request was read names no id.
bool refuses(const nlohmann::json& message, std::int64_t id) {
    const auto error = message.find("error");
    const auto named = message.find("id");
    return error != message.end() && error->is_object() &&
           (named == message.end() || named->is_null() || response_id(message) == id);
}

bool is_visible_text(std::string_view text) {
    return !text.empty() && text.size() <= kSessionIdBytesMax &&
           std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7F'; });
}

}  // namespace

struct UrlConnection::State : std::enable_shared_from_this<UrlConnection::State> {
    State(UrlPlace to, UrlParts with, ConnectionParts given)
        : place(std::move(to)), shared(std::move(with)), parts(std::move(given)) {}

    std::string head_of(const RpcRequest& request) const {
        std::string head = "POST " + place.target + " HTTP/1.1\r\nHost: " +
                           egress::host_header(place.authority, place.tls ? kTlsPort : kPlainPort) +
                           "\r\nContent-Type: application/json\r\n"
                           "Accept: application/json, text/event-stream\r\nConnection: close\r\n";
        const auto add = [&head](std::string_view name, std::string_view value) {
            head.append(name).append(": ").append(value).append("\r\n");
        };
        add("Content-Length", std::to_string(request.text.size()));
        if (!revision.empty() && !request.stateless) {
            add("MCP-Protocol-Version", revision);
        }
        if (!session_id.empty() && !request.stateless) {
            add(kSessionHeader, session_id);
        }
        for (const auto& [name, value] : request.headers) {
            add(name, value);
        }
        for (const auto& [name, value] : place.headers) {
            add(name, value);
        }
        return head + "\r\n";
    }

    /// One POST. Of an answer in events those before the response are notices. A static member:
    /// the coroutine owns the state.
    static asio::awaitable<Result<RpcResponse>> post(
        std::shared_ptr<State> self, RpcRequest request) {
        const auto exchange = std::make_shared<Exchange>(self->parts.io, self->shared.resolver);
        self->exchanges.emplace(exchange, request.id);
        exchange->set_deadline(request.patience);
        auto answered =
            co_await run(self, exchange, std::make_shared<const RpcRequest>(std::move(request)));
        exchange->end();
        self->exchanges.erase(exchange);
        if (self->closed) {
            co_return Error(ErrorCode::kUnavailable, "the tool server is being stopped");
        }
        if (answered.has_error() && exchange->expired()) {
            co_return Error(ErrorCode::kTimeout, "no answer in time");
        }
        co_return answered;
    }

    static asio::awaitable<void> give_notice(std::shared_ptr<State> self, std::string text) {
        ++self->notices;
        RpcRequest notice;
        notice.text = std::move(text);
        notice.patience = kNoticePatience;
        (void)co_await post(self, std::move(notice));  // Ignored: it may get lost.
        --self->notices;
    }

    static asio::awaitable<Result<RpcResponse>> run(
        std::shared_ptr<State> self,
        std::shared_ptr<Exchange> exchange,
        std::shared_ptr<const RpcRequest> request) {
        const Exchange::To to{self->place.authority, self->place.tls ? self->shared.tls : nullptr};
        BOOST_OUTCOME_CO_TRY(co_await exchange->open(to));
        const std::string sent = self->head_of(*request) + request->text;
        BOOST_OUTCOME_CO_TRY(co_await exchange->send(sent));
        BOOST_OUTCOME_CO_TRY(co_await exchange->read_head());
        const Status accepted = self->check(exchange->head(), *request);
        const bool explained = request->stateless && request->id != 0 &&
                               has_type(exchange->head(), "application/json");
        if (accepted.has_error() && !explained) {
            co_return accepted.error();
        }
        if (request->id == 0) {
            co_return RpcResponse();
        }
        if (has_type(exchange->head(), "text/event-stream")) {
            co_return co_await read_events(self, exchange, request->id);
        }
        Result<RpcResponse> response = co_await read_body(self, exchange);
        if (accepted.has_error() &&
            !(response.has_value() && refuses(response.value().message, request->id))) {
            co_return accepted.error();
        }
        if (accepted.has_value() && response.has_value() &&
            response_id(response.value().message) != request->id) {
            co_return Error(ErrorCode::kProtocol, "the answer is to another request");
        }
        co_return response;
    }

    static asio::awaitable<Result<RpcResponse>> read_body(
        std::shared_ptr<State> self, std::shared_ptr<Exchange> exchange) {
        std::string body;
        while (true) {
            BOOST_OUTCOME_CO_TRY(const std::string piece, co_await exchange->read_body());
            if (piece.empty() && exchange->done()) {
                break;
            }
            body += piece;
        }
        co_return co_await read_rpc(self->parts, std::move(body));
    }

    static asio::awaitable<Result<RpcResponse>> read_events(
        std::shared_ptr<State> self, std::shared_ptr<Exchange> exchange, std::int64_t id) {
        EventLines lines;
        while (true) {
            BOOST_OUTCOME_CO_TRY(const std::string piece, co_await exchange->read_body());
            if (piece.empty() && exchange->done()) {
                break;
            }
            for (std::string& event : lines.feed(piece)) {
                if (event.empty()) {
                    continue;  // only tells where a stream could be taken up again
                }
                BOOST_OUTCOME_CO_TRY(
                    RpcResponse response, co_await read_rpc(self->parts, std::move(event)));
                if (response_id(response.message) == id) {
                    co_return response;
                }
                if (!self->closed && response.message.contains("method")) {
                    self->parts.on_notice(response.message);
                }
            }
        }
        co_return Error(ErrorCode::kUnavailable, "the answer ended before the response");
    }

    /// Takes the session that the server may have begun.
    Status check(const egress::MessageHead& head, const RpcRequest& request) {
        if (head.status == kStatusNotFound && !session_id.empty()) {
            const Error why(ErrorCode::kUnavailable, "the tool server has forgotten its client");
            lose(why);
            return why;
        }
        if (head.status < kStatusOk || head.status >= kStatusSuccessEnd ||
            (request.id != 0 && head.status != kStatusOk)) {
            return Error(
                ErrorCode::kUnavailable, "answered with status " + std::to_string(head.status));
        }
        const auto ids = egress::values_of(head, kSessionHeader);
        if (!request.stateless && session_id.empty() && ids.size() == 1 &&
            is_visible_text(ids.front())) {
            session_id = ids.front();
        }
        return ok();
    }

    void lose(const Error& why) {
        if (closed) {
            return;
        }
        const auto on_lost = parts.on_lost;
        shut();
        on_lost(why);
    }

    void shut() {
        closed = true;
        for (const auto& [exchange, id] : std::map(exchanges)) {
            exchange->end();
        }
    }

    /// Its coroutine takes it out of the map.
    void end_exchange(std::int64_t id) {
        for (const auto& [exchange, request] : exchanges) {
            if (request == id) {
                exchange->end();
                return;
            }
        }
    }

    UrlPlace place;
    UrlParts shared;
    ConnectionParts parts;
    std::string revision;    // of the session; empty: there is none
    std::string session_id;  // empty: the server has begun none
    std::map<std::shared_ptr<Exchange>, std::int64_t> exchanges;  // to the id of the request
    std::size_t notices = 0;
    bool closed = false;
};

UrlConnection::UrlConnection(UrlPlace place, UrlParts shared, ConnectionParts parts)
    : state_(std::make_shared<State>(std::move(place), std::move(shared), std::move(parts))) {}

UrlConnection::~UrlConnection() {
    close();
}

asio::awaitable<RpcAnswer> UrlConnection::request(RpcRequest request) {
    const std::shared_ptr<State> state = state_;
    if (state->closed) {
        co_return make_answer(
            Error(ErrorCode::kUnavailable, "the connection to the tool server is closed"));
    }
    co_return make_answer(co_await State::post(state, std::move(request)));
}

void UrlConnection::notify(std::string text) {
    if (state_->closed || state_->notices >= kNoticesMax) {
        return;
    }
    asio::co_spawn(state_->parts.io, State::give_notice(state_, std::move(text)), asio::detached);
}

void UrlConnection::cancel(std::int64_t id, std::string notice) {
    if (state_->revision.empty()) {
        state_->end_exchange(id);
    } else {
        notify(std::move(notice));
    }
}

asio::awaitable<void> UrlConnection::begin_session(std::string revision, std::string notice) {
    const std::shared_ptr<State> state = state_;
    state->revision = std::move(revision);
    co_await State::give_notice(state, std::move(notice));  // the next request tells
}

void UrlConnection::close() {
    if (!state_->closed) {
        state_->shut();
    }
}

}  // namespace cellkeep::tools
