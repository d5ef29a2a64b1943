// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/zmq_session.hpp"

#include "protocol/limits.hpp"
#include "protocol/support/syscall.hpp"

#include <unistd.h>

#include <charconv>
#include <utility>

namespace cellkeep::jupyter {
namespace {

constexpr std::size_t kKeyBytes = 32;
constexpr const char* kLoopback = "127.0.0.1";

/// "tcp://127.0.0.1:40123" to 40123.
Result<std::uint16_t> parse_port(const std::string& endpoint) {
    const std::size_t colon = endpoint.rfind(':');
    std::uint16_t port = 0;
    const char* end = endpoint.data() + endpoint.size();
    const auto parsed = std::from_chars(endpoint.data() + colon + 1, end, port);
    if (parsed.ec != std::errc() || parsed.ptr != end || port == 0) {
        return Error(ErrorCode::kSystem, "ZMQ_LAST_ENDPOINT names no port: " + endpoint);
    }
    return port;
}

}  // namespace

/// Where the answers to one ZeroMQ client go. Outlives the front harmlessly.
class ZmqClient : public session::ReplySink {
 public:
    ZmqClient(std::weak_ptr<ZmqSession> front, std::vector<std::string> identities)
        : front_(std::move(front)), identities_(std::move(identities)) {}

    void deliver(const protocol::Message& message) override {
        // Ignored: the session has closed and its sockets are gone; nobody can be told.
        if (const std::shared_ptr<ZmqSession> front = front_.lock(); front != nullptr) {
            front->deliver(identities_, message);
        }
    }

 private:
    std::weak_ptr<ZmqSession> front_;
    std::vector<std::string> identities_;
};

Result<std::shared_ptr<ZmqSession>> ZmqSession::create(
    boost::asio::io_context& io,
    const ZmqContext& context,
    const std::shared_ptr<session::Session>& session,
    ZmqSessionConfig config) {
    BOOST_OUTCOME_TRY(std::string key, random_hex(kKeyBytes));
    BOOST_OUTCOME_TRY(protocol::Signer signer, protocol::Signer::create("hmac-sha256", key));
    const auto front =
        std::make_shared<ZmqSession>(Key(), session, std::move(signer), std::move(config));
    front->connection_.key = std::move(key);
    // From here on close(), which the destructor calls, takes back whatever was done.
    BOOST_OUTCOME_TRY(front->open_sockets(io, context));
    BOOST_OUTCOME_TRY(
        protocol::write_connection_file(front->config_.connection_file, front->connection_));
    session->subscribe(front.get());
    session->set_connection_file(front->config_.connection_file);
    return front;
}

ZmqSession::ZmqSession(
    Key /*key*/,
    std::shared_ptr<session::Session> session,
    protocol::Signer signer,
    ZmqSessionConfig config)
    : session_(std::move(session)),
      signer_(std::move(signer)),
      config_(std::move(config)),
      log_(session_->id(), config_.log) {
    connection_.transport = config_.transport;
    connection_.ip =
        config_.transport == protocol::Transport::kTcp ? kLoopback : config_.ipc_prefix;
    connection_.kernel_name = session_->info().language;
}

ZmqSession::~ZmqSession() {
    close();
}

Status ZmqSession::open_sockets(boost::asio::io_context& io, const ZmqContext& context) {
    using protocol::Channel;
    BOOST_OUTCOME_TRY(shell_, open_router(io, context, Channel::kShell, connection_.shell_port));
    BOOST_OUTCOME_TRY(open_iopub(io, context));
    BOOST_OUTCOME_TRY(stdin_, open_router(io, context, Channel::kStdin, connection_.stdin_port));
    BOOST_OUTCOME_TRY(
        control_, open_router(io, context, Channel::kControl, connection_.control_port));
    return open_heartbeat(io, context);
}

Result<ZmqSocket> ZmqSession::bind(
    const ZmqContext& context, const ZmqSocketOptions& options, std::uint16_t& port) {
    const bool tcp = config_.transport == protocol::Transport::kTcp;
    BOOST_OUTCOME_TRY(ZmqSocket socket, ZmqSocket::create(context, options));
    if (tcp) {
        // Bound first and asked for its port afterwards, so that no other program can take it
        // between.
        BOOST_OUTCOME_TRY(socket.bind("tcp://" + std::string(kLoopback) + ":*"));
        BOOST_OUTCOME_TRY(const std::string endpoint, socket.last_endpoint());
        BOOST_OUTCOME_TRY(port, parse_port(endpoint));
    } else {
        // As jupyter_client does: the "ports" of ipc are small numbers after the prefix.
        std::uint16_t number = 1;
        for (const std::uint16_t* taken :
             {&connection_.shell_port,
              &connection_.iopub_port,
              &connection_.stdin_port,
              &connection_.control_port}) {
            number = *taken != 0 ? static_cast<std::uint16_t>(number + 1) : number;
        }
        BOOST_OUTCOME_TRY(socket.bind(connection_.endpoint(number)));
        port = number;
    }
    return socket;
}

Result<std::shared_ptr<WatchedSocket>> ZmqSession::open_router(
    boost::asio::io_context& io,
    const ZmqContext& context,
    protocol::Channel channel,
    std::uint16_t& port) {
    BOOST_OUTCOME_TRY(
        ZmqSocket socket,
        bind(
            context,
            {.type = ZmqSocketType::kRouter,
             .high_water_mark = limits::kZmqHighWaterMark,
             .receive_high_water_mark = limits::kZmqReceiveHighWaterMark,
             .frame_bytes_max = limits::kFrameBytesMax,
             .linger = limits::kZmqLinger},
            port));
    SocketEvents events;
    const std::weak_ptr<ZmqSession> weak = weak_from_this();
    events.on_message = [weak, channel](const ZmqMultipart& multipart) {
        if (const auto self = weak.lock(); self != nullptr) {
            self->receive(channel, multipart);
        }
    };
    events.on_error = [weak, channel](const Error& error) {
        if (const auto self = weak.lock(); self != nullptr) {
            self->report(protocol::to_string(channel), error);
        }
    };
    return WatchedSocket::create(io, std::move(socket), std::move(events));
}

Status ZmqSession::open_iopub(boost::asio::io_context& io, const ZmqContext& context) {
    BOOST_OUTCOME_TRY(
        ZmqSocket socket,
        bind(
            context,
            {.type = ZmqSocketType::kXpub,
             .high_water_mark = config_.high_water_mark,
             .receive_high_water_mark = limits::kZmqReceiveHighWaterMark,
             .frame_bytes_max = limits::kZmqSubscriptionBytesMax,
             .linger = limits::kZmqLinger},
            connection_.iopub_port));
    IopubConfig config;
    config.session_id = session_->id();
    config.kernel_id = session_->info().kernel_id;
    config.stall_max = config_.stall_max;
    config.on_drained = [weak = weak_from_this()] {
        if (const auto self = weak.lock(); self != nullptr && !self->closed_) {
            self->session_->resume_output();
        }
    };
    BOOST_OUTCOME_TRY(
        iopub_, IopubPublisher::create(io, std::move(socket), signer_, log_, std::move(config)));
    return ok();
}

Status ZmqSession::open_heartbeat(boost::asio::io_context& io, const ZmqContext& context) {
    BOOST_OUTCOME_TRY(
        ZmqSocket socket,
        bind(
            context,
            {.type = ZmqSocketType::kRouter,
             .high_water_mark = limits::kHeartbeatHighWaterMark,
             .receive_high_water_mark = limits::kHeartbeatHighWaterMark,
             .frame_bytes_max = limits::kHeartbeatBytesMax,
             .linger = limits::kZmqLinger},
            connection_.hb_port));
    SocketEvents events;
    const std::weak_ptr<ZmqSession> weak = weak_from_this();
    events.on_message = [weak](const ZmqMultipart& multipart) {
        if (const auto self = weak.lock(); self != nullptr) {
            self->beat(multipart);
        }
    };
    events.on_error = [weak](const Error& error) {
        if (const auto self = weak.lock(); self != nullptr) {
            self->report("heartbeat", error);
        }
    };
    BOOST_OUTCOME_TRY(heartbeat_, WatchedSocket::create(io, std::move(socket), std::move(events)));
    return ok();
}

void ZmqSession::receive(protocol::Channel channel, const ZmqMultipart& multipart) {
    if (closed_) {
        return;
    }
    Result<protocol::SignedMessage> opened = signer_.open(channel, multipart.frames());
    if (opened.has_error()) {
        // Never answered: who cannot sign gets no sign of life, and no error to work with.
        report(protocol::to_string(channel), opened.error());
        return;
    }
    std::shared_ptr<session::ReplySink> client = client_for(std::move(opened.value().identities));
    session_->submit(std::move(opened.value().message), std::move(client));
}

/// Echoes the bytes. A ROUTER can never get out of step, as a REP does when its client dies between
/// two beats. What no client sends as a beat is ignored. A dead kernel has no heartbeat, whatever
/// the server does.
void ZmqSession::beat(const ZmqMultipart& multipart) {
    if (closed_ || multipart.frames().size() > limits::kHeartbeatFramesMax) {
        return;
    }
    if (session_->state() == session::KernelState::kDead) {
        return;
    }
    const Result<SendOutcome> outcome = heartbeat_->send(multipart.frames());
    if (outcome.has_error()) {
        log_.record(PeerEvent::kSocketFailed, "heartbeat: " + outcome.error().message());
    }
}

void ZmqSession::report(std::string_view socket, const Error& error) {
    const bool refused =
        error.code() == ErrorCode::kProtocol || error.code() == ErrorCode::kLimitExceeded;
    log_.record(
        refused ? PeerEvent::kRejected : PeerEvent::kSocketFailed,
        std::string(socket) + ": " + error.message());
}

std::shared_ptr<session::ReplySink> ZmqSession::client_for(Identities identities) {
    if (clients_.size() >= clients_purge_at_) {
        std::erase_if(clients_, [](const auto& entry) { return entry.second.expired(); });
        // Each that is left holds a request that the session accepted, and those are bounded.
        clients_purge_at_ = 2 * clients_.size() + 64;
    }
    std::weak_ptr<session::ReplySink>& known = clients_[identities];
    std::shared_ptr<session::ReplySink> client = known.lock();
    if (client == nullptr) {
        client = std::make_shared<ZmqClient>(weak_from_this(), std::move(identities));
        known = client;
    }
    return client;
}

void ZmqSession::deliver(const Identities& identities, const protocol::Message& message) {
    if (closed_) {
        return;
    }
    const protocol::Channel channel = message.channel();
    const std::shared_ptr<WatchedSocket>& socket =
        channel == protocol::Channel::kControl
            ? control_
            : (channel == protocol::Channel::kStdin ? stdin_ : shell_);
    const std::string signature = signer_.sign(
        message.header_json(),
        message.parent_header_json(),
        message.metadata_json(),
        message.content_json());
    std::vector<std::string_view> frames(identities.begin(), identities.end());
    const std::vector<std::string_view> signed_frames = signer_.frames(message, signature);
    frames.insert(frames.end(), signed_frames.begin(), signed_frames.end());
    const Result<SendOutcome> outcome = socket->send(frames);
    const std::string what =
        std::string(protocol::to_string(channel)) + " " + message.header().msg_type;
    if (outcome.has_error()) {
        log_.record(PeerEvent::kSocketFailed, what + ": " + outcome.error().message());
    } else if (outcome.value() == SendOutcome::kPeerGone) {
        log_.record(PeerEvent::kUndeliverable, what + ": the client is not connected");
    } else if (outcome.value() == SendOutcome::kFull) {
        log_.record(PeerEvent::kUndeliverable, what + ": the client does not read");
    }
}

void ZmqSession::on_output(const session::OutputEntry& entry) {
    if (!closed_) {
        iopub_->publish(entry.message);
    }
}

bool ZmqSession::congested() const {
    return !closed_ && iopub_->congested();
}

void ZmqSession::close() {
    if (std::exchange(closed_, true)) {
        return;
    }
    session_->unsubscribe(this);
    if (iopub_ != nullptr) {
        iopub_->close();
        iopub_.reset();
    }
    for (std::shared_ptr<WatchedSocket>* socket : {&shell_, &control_, &stdin_, &heartbeat_}) {
        if (*socket != nullptr) {
            (*socket)->close();
            socket->reset();
        }
    }
    // Ignored, here and below: it was never made, or libzmq took it away already.
    (void)::unlink(config_.connection_file.c_str());
    if (config_.transport == protocol::Transport::kIpc) {
        for (int number = 1; number <= 5; ++number) {
            (void)::unlink((config_.ipc_prefix + "-" + std::to_string(number)).c_str());
        }
    }
}

}  // namespace cellkeep::jupyter
