// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/jupyter/zmq_client.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <utility>

namespace cellkeep::jupyter::test {
namespace {

constexpr std::chrono::seconds kPatience{40};

protocol::ConnectionInfo load(const std::string& path) {
    Result<protocol::ConnectionInfo> info = protocol::load_connection_file(path);
    REQUIRE(info.has_value());
    return std::move(info).value();
}

}  // namespace

bool run_until(boost::asio::io_context& io, const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!done()) {
        if (std::chrono::steady_clock::now() > deadline) {
            return false;
        }
        io.restart();
        io.run_one_for(std::chrono::milliseconds(1));
        io.poll();
    }
    return true;
}

void send_frames(zmq::socket_t& socket, const Frames& frames) {
    for (std::size_t i = 0; i < frames.size(); ++i) {
        socket.send(
            zmq::buffer(frames[i]),
            i + 1 < frames.size() ? zmq::send_flags::sndmore : zmq::send_flags::none);
    }
}

std::optional<Frames> try_receive_frames(zmq::socket_t& socket) {
    Frames frames;
    zmq::message_t frame;
    if (!socket.recv(frame, zmq::recv_flags::dontwait)) {
        return std::nullopt;
    }
    frames.push_back(frame.to_string());
    while (frame.more()) {
        REQUIRE(socket.recv(frame, zmq::recv_flags::dontwait));
        frames.push_back(frame.to_string());
    }
    return frames;
}

ConnectionWatch::ConnectionWatch(zmq::context_t& context, zmq::socket_t& socket)
    : socket_(socket), events_(context, zmq::socket_type::pair) {
    static std::atomic<int> count{0};
    const std::string address = "inproc://connection-watch-" + std::to_string(count++);
    const int kinds =
        ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_MONITOR_STOPPED;
    REQUIRE(zmq_socket_monitor(socket.handle(), address.c_str(), kinds) == 0);
    events_.set(zmq::sockopt::linger, 0);
    events_.set(
        zmq::sockopt::rcvtimeo, static_cast<int>(std::chrono::milliseconds(kPatience).count()));
    events_.connect(address);
}

/// zmq_socket_monitor(3): the kind in the first two bytes of a frame, and a frame with the address.
bool ConnectionWatch::take_event(zmq::recv_flags flags) {
    zmq::message_t frame;
    if (!events_.recv(frame, flags)) {
        return false;
    }
    std::uint16_t kind = 0;
    REQUIRE(frame.size() >= sizeof(kind));
    std::memcpy(&kind, frame.data(), sizeof(kind));
    const bool connected = kind == ZMQ_EVENT_HANDSHAKE_SUCCEEDED;
    ended_ = ended_ || (connected_ && !connected);
    connected_ = connected;
    stopped_ = kind == ZMQ_EVENT_MONITOR_STOPPED;
    while (frame.more()) {
        REQUIRE(events_.recv(frame, zmq::recv_flags::none));
    }
    return true;
}

/// An event that nobody receives stops the context's thread for ever: libzmq waits for a receiver.
ConnectionWatch::~ConnectionWatch() {
    if (socket_.handle() != nullptr) {
        (void)zmq_socket_monitor(socket_.handle(), nullptr, 0);
    }
    while (!stopped_ && take_event(zmq::recv_flags::none)) {
    }
}

void ConnectionWatch::wait_until_ended() {
    while (take_event(zmq::recv_flags::dontwait)) {
    }
    while (connected_ && !ended_) {
        REQUIRE(take_event(zmq::recv_flags::none));
    }
    ended_ = false;
}

void ZmqTestClient::wait_until_parted() {
    for (ConnectionWatch& watch : watches_) {
        watch.wait_until_ended();
    }
}

ZmqTestClient::ZmqTestClient(zmq::context_t& context, const std::string& connection_file)
    : info(load(connection_file)),
      shell(context, zmq::socket_type::dealer),
      control(context, zmq::socket_type::dealer),
      stdin_socket(context, zmq::socket_type::dealer),
      iopub(context, zmq::socket_type::sub),
      heartbeat(context, zmq::socket_type::req),
      signer_(protocol::Signer::create(info.signature_scheme, info.key).value()) {
    session_id = protocol::make_header("x", "", "").msg_id;
    for (zmq::socket_t* dealer : {&shell, &control, &stdin_socket}) {
        // As jupyter_client does: one routing id for all, so that stdin finds its shell.
        dealer->set(zmq::sockopt::routing_id, session_id);
        dealer->set(zmq::sockopt::sndhwm, 0);
        dealer->set(zmq::sockopt::rcvhwm, 0);
    }
    for (zmq::socket_t* socket : {&shell, &control, &stdin_socket, &iopub, &heartbeat}) {
        socket->set(zmq::sockopt::linger, 0);
    }
    for (zmq::socket_t* socket : {&shell, &control, &stdin_socket, &heartbeat}) {
        watches_.emplace_back(context, *socket);
    }
    shell.connect(info.endpoint(info.shell_port));
    control.connect(info.endpoint(info.control_port));
    stdin_socket.connect(info.endpoint(info.stdin_port));
    iopub.connect(info.endpoint(info.iopub_port));
    heartbeat.connect(info.endpoint(info.hb_port));
}

Frames ZmqTestClient::sign(const protocol::Message& message) const {
    const std::string signature = signer_.sign(
        message.header_json(),
        message.parent_header_json(),
        message.metadata_json(),
        message.content_json());
    Frames frames;
    for (const std::string_view frame : signer_.frames(message, signature)) {
        frames.emplace_back(frame);
    }
    return frames;
}

protocol::Message ZmqTestClient::send(
    protocol::Channel channel, const std::string& msg_type, const nlohmann::json& content) {
    protocol::Message message = protocol::Message::make(
        channel,
        protocol::make_header(msg_type, session_id, "tester"),
        nlohmann::json::object(),
        content);
    send_frames(socket(channel), sign(message));
    return message;
}

std::optional<protocol::Message> ZmqTestClient::try_receive(protocol::Channel channel) {
    const std::optional<Frames> frames = try_receive_frames(socket(channel));
    if (!frames.has_value()) {
        return std::nullopt;
    }
    const std::vector<std::string_view> views(frames->begin(), frames->end());
    Result<protocol::SignedMessage> opened = signer_.open(channel, views);
    INFO((opened.has_error() ? opened.error().message() : "signed"));
    REQUIRE(opened.has_value());
    if (channel == protocol::Channel::kIopub) {
        REQUIRE(opened.value().identities.size() == 1);
        last_topic = opened.value().identities.front();
    } else {
        REQUIRE(opened.value().identities.empty());
    }
    return std::move(opened.value().message);
}

void ZmqTestClient::subscribe(const std::string& topic) {
    iopub.set(zmq::sockopt::subscribe, topic);
}

zmq::socket_t& ZmqTestClient::socket(protocol::Channel channel) {
    switch (channel) {
        case protocol::Channel::kControl:
            return control;
        case protocol::Channel::kStdin:
            return stdin_socket;
        case protocol::Channel::kIopub:
            return iopub;
        case protocol::Channel::kShell:
            break;
    }
    return shell;
}

Stage::Stage(ZmqFrontConfig config, bool opened) {
    if (config.directory.empty()) {
        config.directory = directory.path() + "/c";
    }
    if (config.socket_directory.empty()) {
        config.socket_directory = directory.path() + "/s";
    }
    config.log = [this](const std::string& line) { log.push_back(line); };
    Result<std::unique_ptr<ZmqFront>> created = ZmqFront::create(io, std::move(config));
    INFO((created.has_error() ? created.error().message() : "created"));
    REQUIRE(created.has_value());
    front = std::move(created).value();
    const Status created_session = front->on_session_created(session);
    INFO((created_session.has_error() ? created_session.error().message() : "created"));
    REQUIRE(created_session.has_value());
    if (opened) {
        REQUIRE(protocol::load_connection_file(session->connection_file).has_value());
        REQUIRE(run_until([&] { return !session->observers.empty(); }));
    }
}

Stage::~Stage() = default;

protocol::Message Stage::receive(ZmqTestClient& client, protocol::Channel channel) {
    std::optional<protocol::Message> message;
    REQUIRE(run_until([&] {
        message = client.try_receive(channel);
        return message.has_value();
    }));
    return *message;
}

std::uint64_t Stage::count(PeerEvent event) const {
    const PeerLog* counters = front->find_log(session->id());
    REQUIRE(counters != nullptr);
    return counters->count(event);
}

}  // namespace cellkeep::jupyter::test
