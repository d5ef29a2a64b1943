// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/channels/channels_front.hpp"

#include "protocol/limits.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

namespace cellkeep::jupyter {

namespace {

http::Response refuse(int status, const std::string& message) {
    return http::make_json(status, {{"message", message}, {"reason", nullptr}});
}

std::optional<Replay> parse_replay(const std::optional<std::string>& text) {
    if (!text.has_value()) {
        return Replay::kPlace;
    }
    if (*text == "all") {
        return Replay::kAll;
    }
    if (*text == "running") {
        return Replay::kRunning;
    }
    if (*text == "none") {
        return Replay::kNone;
    }
    return std::nullopt;
}

/// jupyter_server as a gateway's client reads every message as text and loses its connection over
/// one that is binary (GatewayWebSocketConnection._read_messages, jupyter_server 2.17). It is the
/// one client that calls itself by its WebSocket library.
bool breaks_on_binary(const http::Request& request) {
    return request.headers.get("User-Agent").starts_with("Tornado/");
}

/// The message says what is wrong with the query.
Result<ChannelsClient> read_client(const http::Request& request) {
    ChannelsClient client;
    const std::string session_id = request.target.find_query("session_id").value_or("");
    client.since = request.target.find_query("since");
    if (session_id.size() > limits::kHeaderFieldBytesMax ||
        client.since.value_or("").size() > limits::kHeaderFieldBytesMax) {
        return Error(
            ErrorCode::kInvalidArgument,
            "session_id and since have at most " + std::to_string(limits::kHeaderFieldBytesMax) +
                " bytes");
    }
    if (!session_id.empty()) {
        client.key = "p" + request.principal.name + '\0' + session_id;
        client.session_id = session_id;
    }
    const auto replay = parse_replay(request.target.find_query("replay"));
    if (!replay.has_value()) {
        return Error(ErrorCode::kInvalidArgument, "replay must be all, running or none");
    }
    client.replay = *replay;
    client.work_thread = request.work_thread;
    const auto& offered = request.websocket->protocols;
    if (std::find(offered.begin(), offered.end(), kV1Protocol) != offered.end()) {
        client.style.framing = Framing::kV1;
    } else if (breaks_on_binary(request)) {
        client.style.buffers = OutgoingFrame::Buffers::kLeaveOut;
    }
    return client;
}

}  // namespace

ChannelsFront::ChannelsFront(
    boost::asio::io_context& io, session::SessionService& backend, ChannelsConfig config)
    : io_(io), backend_(backend), config_(std::move(config)) {}

void ChannelsFront::add_to(http::Router& router) {
    // A client that may send nothing would still be counted, waited for and asked for input.
    http::Route route(
        http::Access::kChange, "GET", "/api/kernels/{id}/channels", [this](http::Request& request) {
            return open(request);
        });
    route.body_bytes_max = limits::kHttpIgnoredBodyBytesMax;
    router.add(std::move(route));
}

boost::asio::awaitable<http::Response> ChannelsFront::open(http::Request& request) {
    const std::string id = request.capture("id");
    const std::shared_ptr<session::Session> session = backend_.find(id);
    if (session == nullptr || !http::may_see(request.principal, session->info().owner)) {
        co_return refuse(404, "Kernel does not exist: " + id);
    }
    if (!request.websocket.has_value()) {
        co_return refuse(400, "This address is for WebSockets: send an Upgrade request.");
    }
    Result<ChannelsClient> client = read_client(request);
    if (client.has_error()) {
        co_return refuse(400, client.error().message());
    }
    http::WebSocketUpgrade upgrade;
    if (client.value().style.framing == Framing::kV1) {
        upgrade.protocol = std::string(kV1Protocol);
    }
    upgrade.run = [hub = hub_of(session),
                   client = std::move(client).value()](std::shared_ptr<http::WebSocket> socket) {
        return ChannelsHub::serve(hub, std::move(socket), client);
    };
    upgrade.outlasts_pause = true;
    http::Response response;
    response.status = 101;
    response.body = std::move(upgrade);
    co_return response;
}

std::shared_ptr<ChannelsHub> ChannelsFront::hub_of(
    const std::shared_ptr<session::Session>& session) {
    std::shared_ptr<ChannelsHub>& hub = hubs_[session->id()];
    if (hub == nullptr) {
        hub = std::make_shared<ChannelsHub>(io_, session, config_.log, config_.subscription);
    }
    return hub;
}

std::optional<std::string> ChannelsFront::find_work(const session::Session& session) const {
    const auto found = hubs_.find(session.id());
    return found == hubs_.end() ? std::nullopt : found->second->find_work();
}

void ChannelsFront::part() {
    for (const auto& [id, hub] : hubs_) {
        hub->part();
    }
}

void ChannelsFront::end_parting() {
    for (const auto& [id, hub] : hubs_) {
        hub->end_parting();
    }
}

std::size_t ChannelsFront::passed_bytes() const {
    std::size_t bytes = 0;
    for (const auto& [id, hub] : hubs_) {
        bytes += hub->passed_bytes();
    }
    return bytes;
}

nlohmann::json ChannelsFront::pass_on() {
    nlohmann::json passed = nlohmann::json::object();
    for (const auto& [id, hub] : hubs_) {
        if (nlohmann::json places = hub->pass_on(); !places.is_null()) {
            passed[id] = std::move(places);
        }
    }
    hubs_.clear();  // what they hold for clients that are away would keep the loop
    return passed;
}

void ChannelsFront::go_on(const nlohmann::json& passed) {
    for (const auto& [id, places] : passed.items()) {
        // One that was not taken over has ended.
        if (const auto session = backend_.find(id)) {
            hub_of(session)->go_on(places);
        }
    }
}

Status ChannelsFront::on_session_created(const std::shared_ptr<session::Session>& /*session*/) {
    return ok();
}

void ChannelsFront::on_session_closed(const std::string& session_id) {
    auto hub = hubs_.extract(session_id);
    if (hub.empty()) {
        return;
    }
    if (shutting_down_) {
        hub.mapped()->close(http::CloseCode::kGoingAway, "The server is shutting down.");
    } else {
        hub.mapped()->close(http::CloseCode::kNormal, hub.mapped()->close_reason());
    }
}

const PeerLog* ChannelsFront::find_log(const std::string& session_id) const {
    const auto found = hubs_.find(session_id);
    return found == hubs_.end() ? nullptr : &found->second->log();
}

}  // namespace cellkeep::jupyter
