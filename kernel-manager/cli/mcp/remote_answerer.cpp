// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/mcp/remote_answerer.hpp"

#include "kernel-manager/mcp/limits.hpp"
#include "kernel-manager/mcp/wire/header_check.hpp"
#include "protocol/json.hpp"
#include "protocol/mcp/header_value.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <functional>
#include <string_view>
#include <utility>

namespace cellkeep::cli {

namespace asio = boost::asio;

namespace {

/// The server sends a comment line more often than this while code runs.
constexpr std::chrono::milliseconds kRemoteSilenceMax{60'000};
/// What is kept of an answer that has not come to its end. Above what a server answers.
constexpr std::size_t kRemoteAnswerBytesMax = 64ULL << 20U;

/// The messages in a body, JSON or server-sent events, as it comes.
class MessageReader {
 public:
    explicit MessageReader(std::function<bool(nlohmann::json)> give_on, std::function<bool()> done)
        : give_on_(std::move(give_on)), done_(std::move(done)) {}

    /// False when the answer is no longer wanted or is too long.
    bool take(std::string_view piece) {
        text_ += piece;
        if (done_() || text_.size() > kRemoteAnswerBytesMax) {
            return false;
        }
        if (text_.starts_with('{')) {
            return true;  // one JSON document, whole at the end
        }
        std::size_t begin = 0;
        for (std::size_t end = text_.find('\n'); end != std::string::npos;
             end = text_.find('\n', begin)) {
            take_line(std::string_view(text_).substr(begin, end - begin));
            begin = end + 1;
        }
        text_.erase(0, begin);
        return true;
    }

    /// The response; null if there was none.
    nlohmann::json finish() {
        if (response_.is_null() && text_.starts_with('{')) {
            take_message(text_);
        }
        return std::move(response_);
    }

 private:
    void take_line(std::string_view line) {
        static constexpr std::string_view kData = "data: ";
        if (line.starts_with(kData)) {
            take_message(line.substr(kData.size()));
        }
    }

    void take_message(std::string_view text) {
        auto message = protocol::parse_json_object(text, "the server's message");
        if (message.has_error()) {
            return;
        }
        if (message.value().contains("method")) {
            (void)give_on_(std::move(message).value());  // Ignored: its client takes no more.
        } else {
            response_ = std::move(message).value();
        }
    }

    std::function<bool(nlohmann::json)> give_on_;  // what is no response
    std::function<bool()> done_;                   // no more is wanted
    std::string text_;
    nlohmann::json response_;
};

mcp::RpcError remote_failure(const std::string& why) {
    return {mcp::RpcCode::kInternalError, why, {}, {}};
}

/// The answer in a response, or the protocol's error that it is.
mcp::Answerer::Answer answer_in(nlohmann::json response, int status) {
    if (const auto error = response.find("error"); error != response.end() && error->is_object()) {
        const auto code = error->find("code");
        const auto message = error->find("message");
        const auto data = error->find("data");
        if (code != error->end() && code->is_number_integer() && message != error->end() &&
            message->is_string()) {
            return mcp::RpcError{
                static_cast<mcp::RpcCode>(code->get<int>()),
                message->get<std::string>(),
                data == error->end() ? nlohmann::json() : *data,
                {}};
        }
    }
    const auto result = response.find("result");
    if (result == response.end() || !result->is_object()) {
        const auto detail = response.find("detail");  // a problem of HTTP
        return remote_failure(
            detail != response.end() && detail->is_string()
                ? detail->get<std::string>()
                : "The server answered " + std::to_string(status) + " without a result.");
    }
    return std::move(*result);
}

http::ClientRequest make_request(const nlohmann::json& message) {
    http::ClientRequest request;
    request.method = "POST";
    request.target = "/mcp";
    request.body = protocol::dump_json(message);
    request.timeout = kRemoteSilenceMax;
    request.headers.add("Accept", "application/json, text/event-stream");
    return request;
}

asio::awaitable<void> deliver_to(
    std::shared_ptr<const http::ServerAddress> server, http::ClientRequest request) {
    // Ignored: a server that is gone runs nothing.
    (void)co_await http::fetch(*server, std::move(request));
}

asio::awaitable<void> follow(
    std::shared_ptr<const http::ServerAddress> server,
    http::ClientRequest request,
    std::shared_ptr<MessageReader> reader) {
    http::BodySink sink = [reader](std::string_view piece) { return reader->take(piece); };
    // Ignored: it ends with the server or with the client session.
    (void)co_await http::fetch_stream(*server, std::move(request), std::move(sink));
}

void add_stateless_headers(http::Headers& headers, const mcp::Message& message) {
    headers.add("MCP-Protocol-Version", std::string(mcp::kStatelessRevision));
    headers.add("Mcp-Method", protocol::encode_mcp_header(message.method));
    if (const char* parameter = mcp::name_parameter(message.method); parameter != nullptr) {
        const auto name = message.params.find(parameter);
        if (name != message.params.end() && name->is_string()) {
            headers.add("Mcp-Name", protocol::encode_mcp_header(name->get<std::string>()));
        }
    }
}

}  // namespace

RemoteAnswerer::RemoteAnswerer(asio::io_context& io, http::ServerAddress server)
    : io_(io), server_(std::make_shared<const http::ServerAddress>(std::move(server))) {}

asio::awaitable<mcp::Answerer::Answer> RemoteAnswerer::answer(
    std::shared_ptr<mcp::Call> call, mcp::Message message) {
    const bool stateless = call->peer().era == mcp::Era::kStateless;
    const bool is_handshake = message.method == "initialize";
    const std::int64_t id = ++last_id_;
    http::ClientRequest request = make_request(
        {{"jsonrpc", "2.0"},
         // What a stream tells names the request's id: it must be the client's own.
         {"id", stateless ? message.id : nlohmann::json(id)},
         {"method", message.method},
         {"params", message.params}});
    if (stateless) {
        add_stateless_headers(request.headers, message);
    } else if (!is_handshake) {
        request.headers.add("Mcp-Session-Id", session_);
        request.headers.add("MCP-Protocol-Version", revision_);
        call->on_cancel([this, id] { send_cancellation(id); });
    }
    if (message.method == "resources/subscribe") {
        open_stream();
    } else if (message.method == "subscriptions/listen") {
        call->set_endless();
    }
    const auto reader = std::make_shared<MessageReader>(
        [call](const nlohmann::json& sent) { return call->notify(sent); },
        [call] { return call->cancelled(); });
    http::BodySink sink = [reader](std::string_view piece) { return reader->take(piece); };
    const auto response =
        co_await http::fetch_stream(*server_, std::move(request), std::move(sink));
    call->on_cancel({});
    if (response.has_error()) {
        co_return remote_failure(response.error().message());
    }
    Answer answer = answer_in(reader->finish(), response.value().status);
    if (const auto* result = std::get_if<nlohmann::json>(&answer);
        is_handshake && result != nullptr) {
        session_ = response.value().headers.get("Mcp-Session-Id");
        revision_ = result->value("protocolVersion", std::string());
    }
    co_return answer;
}

void RemoteAnswerer::send_cancellation(std::int64_t id) {
    send(mcp::notification_message("notifications/cancelled", {{"requestId", id}}));
}

void RemoteAnswerer::deliver(const mcp::Message& response) {
    nlohmann::json message = response.response;
    message["jsonrpc"] = "2.0";
    message["id"] = response.id;
    send(message);
}

void RemoteAnswerer::send(const nlohmann::json& message) {
    http::ClientRequest request = make_request(message);
    request.headers.add("Mcp-Session-Id", session_);
    request.headers.add("MCP-Protocol-Version", revision_);
    asio::co_spawn(io_, deliver_to(server_, std::move(request)), asio::detached);
}

void RemoteAnswerer::open_stream() {
    if (std::exchange(streaming_, true)) {
        return;
    }
    http::ClientRequest request;
    request.method = "GET";
    request.target = "/mcp";
    request.timeout = kRemoteSilenceMax;
    request.headers.add("Accept", "text/event-stream");
    request.headers.add("Mcp-Session-Id", session_);
    const auto reader = std::make_shared<MessageReader>(
        [outlet = outlet_](const nlohmann::json& sent) { return *outlet && (*outlet)(sent); },
        [outlet = outlet_] { return *outlet == nullptr; });
    asio::co_spawn(io_, follow(server_, std::move(request), reader), asio::detached);
}

void RemoteAnswerer::end() {
    if (session_.empty()) {
        return;
    }
    http::ClientRequest request;
    request.method = "DELETE";
    request.target = "/mcp";
    request.timeout = kRemoteSilenceMax;
    request.headers.add("Mcp-Session-Id", session_);
    asio::co_spawn(io_, deliver_to(server_, std::move(request)), asio::detached);
}

}  // namespace cellkeep::cli
