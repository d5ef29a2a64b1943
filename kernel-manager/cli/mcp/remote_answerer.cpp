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
/// How often one request begins anew: with another token, then with another client session.
constexpr int kRemoteRecoveriesMax = 2;
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
    std::shared_ptr<MessageReader> reader,
    std::shared_ptr<bool> streaming) {
    http::BodySink sink = [reader](std::string_view piece) { return reader->take(piece); };
    // Ignored: it ends with the server or with the client session.
    (void)co_await http::fetch_stream(*server, std::move(request), std::move(sink));
    *streaming = false;
}

bool is_same(const http::ServerAddress& one, const http::ServerAddress& other) {
    return one.host == other.host && one.port == other.port &&
           one.socket_path == other.socket_path && one.token == other.token &&
           one.certificate_sha256 == other.certificate_sha256;
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

RemoteAnswerer::RemoteAnswerer(asio::io_context& io, http::ServerAddress server, FindServer find)
    : io_(io),
      server_(std::make_shared<const http::ServerAddress>(std::move(server))),
      find_(std::move(find)) {}

asio::awaitable<mcp::Answerer::Answer> RemoteAnswerer::answer(
    std::shared_ptr<mcp::Call> call, mcp::Message message) {
    const bool is_handshake = message.method == "initialize";
    const bool in_session = call->peer().era == mcp::Era::kSession && !is_handshake;
    if (is_handshake) {
        handshake_ = message.params;
    }
    for (int left = kRemoteRecoveriesMax;; --left) {
        if (message.method == "resources/subscribe") {
            open_stream();
        }
        Exchange done = co_await exchange(call, message);
        if (left == 0 || call->cancelled()) {
            co_return std::move(done.answer);
        }
        const bool again = co_await recover(done.status, done.session, in_session);
        if (!again) {
            co_return std::move(done.answer);
        }
    }
}

asio::awaitable<RemoteAnswerer::Exchange> RemoteAnswerer::exchange(
    std::shared_ptr<mcp::Call> call, mcp::Message message) {
    const bool stateless = call->peer().era == mcp::Era::kStateless;
    const bool is_handshake = message.method == "initialize";
    const std::int64_t id = ++last_id_;
    Exchange done{remote_failure(""), 0, session_};
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
    if (message.method == "subscriptions/listen") {
        call->set_endless();
    }
    const auto reader = std::make_shared<MessageReader>(
        [call](const nlohmann::json& sent) { return call->notify(sent); },
        [call] { return call->cancelled(); });
    http::BodySink sink = [reader](std::string_view piece) { return reader->take(piece); };
    const auto server = server_;  // another may take its place meanwhile
    const auto response = co_await http::fetch_stream(*server, std::move(request), std::move(sink));
    call->on_cancel({});
    if (response.has_error()) {
        done.answer = remote_failure(response.error().message());
        co_return done;
    }
    done.status = response.value().status;
    done.answer = answer_in(reader->finish(), done.status);
    if (const auto* result = std::get_if<nlohmann::json>(&done.answer);
        is_handshake && result != nullptr) {
        session_ = response.value().headers.get("Mcp-Session-Id");
        revision_ = result->value("protocolVersion", std::string());
    }
    co_return done;
}

asio::awaitable<bool> RemoteAnswerer::recover(int status, std::string session, bool in_session) {
    constexpr int kUnauthorized = 401;
    constexpr int kNoSession = 404;
    if (status == 0) {
        // It may have run: the client decides whether it calls again.
        (void)find_again();
        co_return false;
    }
    if (status == kUnauthorized) {
        co_return find_again();
    }
    if (status != kNoSession || !in_session) {
        co_return false;
    }
    if (session != session_) {
        co_return true;  // another request has begun it anew
    }
    co_return co_await begin_anew();
}

bool RemoteAnswerer::find_again() {
    auto found = find_();
    if (found.has_error() || is_same(found.value(), *server_)) {
        return false;
    }
    server_ = std::make_shared<const http::ServerAddress>(std::move(found).value());
    return true;
}

asio::awaitable<bool> RemoteAnswerer::begin_anew() {
    if (renewal_ != nullptr) {
        const auto others = renewal_;
        co_return co_await Completion<bool>::wait(others);
    }
    const auto renewal = std::make_shared<Completion<bool>>(io_);
    renewal_ = renewal;
    http::ClientRequest request = make_request(
        {{"jsonrpc", "2.0"}, {"id", 0}, {"method", "initialize"}, {"params", handshake_}});
    const auto server = server_;
    const auto response = co_await http::fetch(*server, std::move(request));
    const std::string begun =
        response.has_error() ? "" : std::string(response.value().headers.get("Mcp-Session-Id"));
    if (!begun.empty()) {
        session_ = begun;
        streaming_ = std::make_shared<bool>(false);  // that of the one before ends by itself
    }
    renewal_ = nullptr;
    renewal->set(!begun.empty());
    co_return !begun.empty();
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
    if (std::exchange(*streaming_, true)) {
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
    asio::co_spawn(io_, follow(server_, std::move(request), reader, streaming_), asio::detached);
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
