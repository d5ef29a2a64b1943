// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/transport/http_endpoint.hpp"

#include "kernel-manager/http/message/negotiation.hpp"
#include "kernel-manager/http/message/problem.hpp"
#include "kernel-manager/http/message/text_reading.hpp"
#include "kernel-manager/mcp/transport/answer_stream.hpp"
#include "kernel-manager/mcp/wire/header_check.hpp"
#include "protocol/json.hpp"
#include "protocol/support/completion.hpp"
#include "protocol/support/text.hpp"

#include <optional>
#include <utility>

namespace cellkeep::mcp {

namespace asio = boost::asio;

namespace {

constexpr const char* kSessionHeader = "Mcp-Session-Id";
constexpr const char* kMetadataPath = ".well-known/oauth-protected-resource";

/// What a request of 2026-07-28 gets for each of the protocol's errors.
int status_of(RpcCode code) {
    switch (code) {
        case RpcCode::kMethodNotFound:
            return 404;
        case RpcCode::kInternalError:
            return 500;
        default:
            return 400;
    }
}

http::Response rpc_response(int status, const nlohmann::json& message) {
    return http::make_json_text(status, protocol::TextPieces(protocol::dump_json(message)));
}

http::Response rpc_refusal(int status, const RpcError& error) {
    return rpc_response(status, error_message(error));
}

http::Response refuse_session(const Message& message, const std::string& id) {
    const char* why = id.empty() ? "The request has no Mcp-Session-Id: send initialize first, or a "
                                   "request of 2026-07-28."
                                 : "There is no such client session: send initialize again.";
    return rpc_refusal(id.empty() ? 400 : 404, {RpcCode::kInvalidRequest, why, {}, message.id});
}

http::Response refuse_origin() {
    return http::to_response(http::make_problem(403, "A page of another origin may not do this."));
}

/// Why the request is not looked into, if it is not.
std::optional<http::Response> refuse_form(
    const http::Request& request, const http::OriginPolicy& origins) {
    if (!origins.admits(request)) {
        return refuse_origin();
    }
    const std::string_view type = request.headers.get("Content-Type");
    if (!http::equals_ignoring_case(trim(type.substr(0, type.find(';'))), "application/json")) {
        return http::to_response(
            http::make_problem(415, "Send one JSON-RPC message as application/json."));
    }
    if (!http::choose_media_type(
            request.headers.get("Accept"), {"application/json", "text/event-stream"})) {
        return http::to_response(http::make_problem(
            406, "Answers are application/json and text/event-stream: accept both."));
    }
    return std::nullopt;
}

bool accepts_stream(const http::Request& request) {
    return http::choose_media_type(request.headers.get("Accept"), {"text/event-stream"})
        .has_value();
}

std::string session_id(const http::Request& request) {
    return std::string(trim(request.headers.get(kSessionHeader)));
}

nlohmann::json to_message(const nlohmann::json& id, Front::Answer answer) {
    if (auto* error = std::get_if<RpcError>(&answer)) {
        error->id = id;
        return error_message(*error);
    }
    return result_message(id, std::move(std::get<nlohmann::json>(answer)));
}

Peer peer_of(const ClientSession& session) {
    return {
        Era::kSession, session.revision, session.client->capabilities(), session.client->log_level};
}

/// Until the client session ends, or the one that reads it goes.
asio::awaitable<nlohmann::json> stay_open(
    std::shared_ptr<Call> call, std::shared_ptr<Completion<bool>> ended) {
    const std::shared_ptr<Client> client = call->client();
    call->set_endless();
    client->set_outlet([call](const nlohmann::json& message) { return call->notify(message); });
    client->on_close([ended] { ended->set(true); });
    call->on_cancel([ended] { ended->set(true); });
    if (!call->cancelled()) {
        (void)co_await Completion<bool>::wait(ended);
    }
    call->on_cancel({});
    client->on_close({});
    client->set_outlet({});
    co_return nlohmann::json();
}

/// Takes the request out of the session's calls when its answer has been made.
class CallEntry {
 public:
    CallEntry(std::shared_ptr<ClientSession> session, nlohmann::json id)
        : session_(std::move(session)), id_(std::move(id)) {}
    CallEntry(const CallEntry&) = delete;
    CallEntry& operator=(const CallEntry&) = delete;
    ~CallEntry() {
        if (session_ != nullptr) {
            session_->calls.remove(id_);
        }
    }

 private:
    std::shared_ptr<ClientSession> session_;  // null: the request stands alone
    nlohmann::json id_;
};

}  // namespace

HttpEndpoint::HttpEndpoint(Front& front, HttpEndpointConfig config)
    : front_(front), config_(std::move(config)) {}

void HttpEndpoint::add_to(http::Application& application) {
    using http::Access;
    http::Router& router = application.router();
    const auto member = [this](auto handler) {
        return [this, handler](http::Request& request) { return (this->*handler)(request); };
    };
    router.add(http::Route(Access::kChange, "POST", "/mcp", member(&HttpEndpoint::post)));
    router.add(
        http::Route(Access::kChange, "GET", "/mcp", member(&HttpEndpoint::get)).without_body());
    router.add(http::Route(Access::kChange, "DELETE", "/mcp", member(&HttpEndpoint::remove))
                   .without_body());
    for (const char* path : {"", "/mcp"}) {
        router.add(http::Route(
                       Access::kOpen,
                       "GET",
                       "/" + std::string(kMetadataPath) + path,
                       member(&HttpEndpoint::resource_metadata))
                       .without_body());
    }
    application.set_challenge("mcp", [this](const http::Request& request) {
        return "resource_metadata=\"" + address_of(request) + kMetadataPath + "/mcp\"";
    });
}

void HttpEndpoint::stop() {
    sessions_.close_all();
    front_.stop();
}

nlohmann::json HttpEndpoint::pass_on() const {
    PassedClients passed;
    front_.pass_on(passed);
    sessions_.pass_on(passed, [](const Client& client) { return Front::pass_on(client); });
    return to_json(passed);
}

Status HttpEndpoint::go_on(const nlohmann::json& value) {
    BOOST_OUTCOME_TRY(const PassedClients passed, read_passed_clients(value));
    BOOST_OUTCOME_TRY(front_.go_on(passed));
    sessions_.go_on(passed, [this](const PassedClient& client) { return front_.go_on(client); });
    return ok();
}

HttpEndpoint::Response HttpEndpoint::post(http::Request& request) {
    if (auto refused = refuse_form(request, config_.origins)) {
        co_return std::move(*refused);
    }
    using Parsed = std::variant<Message, RpcError>;
    http::TextReader<Parsed> parse = parse_message;
    Parsed parsed = co_await http::read_body<Parsed>(request, std::move(parse));
    if (const auto* error = std::get_if<RpcError>(&parsed)) {
        co_return rpc_refusal(400, *error);
    }
    auto& message = std::get<Message>(parsed);
    const std::string header(trim(request.headers.get("MCP-Protocol-Version")));
    auto peer = read_peer(message, header);
    if (const auto* error = std::get_if<RpcError>(&peer)) {
        co_return rpc_refusal(400, *error);
    }
    const auto& stateless = std::get<std::optional<Peer>>(peer);
    if (message.kind != MessageKind::kRequest) {
        co_return take_notification(request, message, stateless ? &*stateless : nullptr);
    }
    if (stateless) {
        auto answered = co_await answer_stateless(request, std::move(message), *stateless);
        co_return answered;
    }
    if (message.method == "initialize") {
        auto begun = co_await begin_session(request, std::move(message));
        co_return begun;
    }
    auto answered = co_await answer_in_session(request, std::move(message));
    co_return answered;
}

http::Response HttpEndpoint::take_notification(
    const http::Request& request, const Message& message, const Peer* stateless) {
    if (stateless != nullptr) {
        // There the end of the connection cancels. Nothing else is notified.
        return http::make_empty(202);
    }
    const std::string id = session_id(request);
    const auto session = sessions_.find(id, request.principal.name);
    if (session == nullptr) {
        return refuse_session(message, id);
    }
    if (message.kind == MessageKind::kResponse) {
        (void)session->client->questions().deliver(message);  // Ignored: it may come too late.
    } else if (message.method == "notifications/cancelled") {
        session->calls.cancel(message);
    }
    return http::make_empty(202);
}

HttpEndpoint::Response HttpEndpoint::answer_stateless(
    http::Request& request, Message message, Peer peer) {
    if (const auto error = check_headers(request.headers, message)) {
        co_return rpc_refusal(status_of(error->code), *error);
    }
    auto token = read_progress_token(message);
    if (const auto* error = std::get_if<RpcError>(&token)) {
        co_return rpc_refusal(status_of(error->code), *error);
    }
    const auto call = std::make_shared<Call>(
        request.principal, std::move(peer), std::move(std::get<nlohmann::json>(token)));
    if (front_.waits(message) && accepts_stream(request)) {
        co_return answer_streamed(call, std::move(message), nullptr);
    }
    if (front_.waits(message) && Front::listens(message)) {
        co_return http::to_response(
            http::make_problem(406, "The answer is text/event-stream: accept it."));
    }
    auto answered = co_await answer_whole(request, call, std::move(message), nullptr);
    co_return answered;
}

HttpEndpoint::Response HttpEndpoint::begin_session(http::Request& request, Message message) {
    const auto call = std::make_shared<Call>(request.principal, Peer{});
    const nlohmann::json id = message.id;
    std::shared_ptr<Client> client = front_.make_client(message.params);
    Front::Answer answer = co_await front_.answer(call, std::move(message));
    const auto* result = std::get_if<nlohmann::json>(&answer);
    if (result == nullptr) {
        co_return rpc_response(400, to_message(id, std::move(answer)));
    }
    const auto opened = sessions_.open(
        request.principal.name,
        result->at("protocolVersion").get<std::string>(),
        std::move(client));
    if (opened.has_error()) {
        co_return http::to_response(http::problem_from(opened.error()));
    }
    http::Response response = rpc_response(200, to_message(id, std::move(answer)));
    response.headers.add(kSessionHeader, opened.value());
    co_return response;
}

HttpEndpoint::Response HttpEndpoint::answer_in_session(http::Request& request, Message message) {
    const std::string id = session_id(request);
    const auto session = sessions_.find(id, request.principal.name);
    if (session == nullptr) {
        co_return refuse_session(message, id);
    }
    auto token = read_progress_token(message);
    if (const auto* error = std::get_if<RpcError>(&token)) {
        co_return rpc_refusal(200, *error);
    }
    const auto call = std::make_shared<Call>(
        request.principal,
        peer_of(*session),
        std::move(std::get<nlohmann::json>(token)),
        session->client);
    if (!session->calls.add(message.id, call)) {
        co_return rpc_refusal(
            400,
            {RpcCode::kInvalidRequest,
             "A request of this id is being answered already.",
             {},
             message.id});
    }
    if (front_.waits(message) && accepts_stream(request)) {
        co_return answer_streamed(call, std::move(message), session);
    }
    auto answered = co_await answer_whole(request, call, std::move(message), session);
    co_return answered;
}

HttpEndpoint::Response HttpEndpoint::answer_whole(
    http::Request& request,
    std::shared_ptr<Call> call,
    Message message,
    std::shared_ptr<ClientSession> session) {
    const bool stands_alone = session == nullptr;
    const nlohmann::json id = message.id;
    const CallEntry entry(std::move(session), id);
    if (stands_alone && request.client != nullptr) {
        request.client->watch([call] { call->cancel(); });
    }
    Front::Answer answer = co_await front_.answer(call, std::move(message));
    if (stands_alone && request.client != nullptr) {
        request.client->watch({});
    }
    const auto* error = std::get_if<RpcError>(&answer);
    const int status = error != nullptr && stands_alone ? status_of(error->code) : 200;
    co_return rpc_response(status, to_message(id, std::move(answer)));
}

http::Response HttpEndpoint::answer_streamed(
    const std::shared_ptr<Call>& call, Message message, std::shared_ptr<ClientSession> session) {
    const OnGone on_gone = session == nullptr ? OnGone::kCancel : OnGone::kGoOn;
    // A stream whose head could not be sent is never run: the entry goes with it.
    const auto entry = std::make_shared<CallEntry>(std::move(session), message.id);
    http::Response response = begin_stream();
    const auto make =
        [this, call, message = std::move(message), entry]() -> asio::awaitable<nlohmann::json> {
        const nlohmann::json id = message.id;
        Front::Answer answer = co_await front_.answer(call, message);
        co_return to_message(id, std::move(answer));
    };
    response.body = http::StreamBody{[call, on_gone, make](http::BodyWriter& writer) {
        return write_answer(writer, call, on_gone, make);
    }};
    return response;
}

HttpEndpoint::Response HttpEndpoint::get(http::Request& request) {
    if (!config_.origins.admits(request)) {
        co_return refuse_origin();
    }
    const std::string id = session_id(request);
    const auto session = sessions_.find(id, request.principal.name);
    if (session == nullptr) {
        co_return refuse_session({}, id);
    }
    if (!accepts_stream(request)) {
        co_return http::to_response(
            http::make_problem(406, "The answer is text/event-stream: accept it."));
    }
    if (session->client->has_outlet()) {
        co_return http::to_response(
            http::make_problem(409, "The client session has its stream already."));
    }
    const auto call = std::make_shared<Call>(
        request.principal, peer_of(*session), nlohmann::json(), session->client);
    const auto ended = std::make_shared<Completion<bool>>(front_.io());
    http::Response response = begin_stream();
    response.body = http::StreamBody{[call, ended](http::BodyWriter& writer) {
        const auto make = [call, ended] { return stay_open(call, ended); };
        return write_answer(writer, call, OnGone::kCancel, make);
    }};
    co_return response;
}

HttpEndpoint::Response HttpEndpoint::remove(http::Request& request) {
    if (!config_.origins.admits(request)) {
        co_return refuse_origin();
    }
    const std::string id = session_id(request);
    if (!sessions_.close(id, request.principal.name)) {
        co_return refuse_session({}, id);
    }
    co_return http::make_empty(204);
}

std::string HttpEndpoint::address_of(const http::Request& request) const {
    const bool tls = config_.tls ||
                     http::equals_ignoring_case(request.headers.get("X-Forwarded-Proto"), "https");
    return (tls ? "https://" : "http://") + std::string(request.headers.get("Host")) +
           config_.base_url;
}

HttpEndpoint::Response HttpEndpoint::resource_metadata(http::Request& request) {
    co_return http::make_json(
        200,
        {{"resource", address_of(request) + "mcp"},
         {"resource_name", "Cellkeep"},
         {"bearer_methods_supported", nlohmann::json::array({"header"})}});
}

}  // namespace cellkeep::mcp
