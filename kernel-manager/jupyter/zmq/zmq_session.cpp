// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/zmq/zmq_session.hpp"

#include "kernel-manager/http/message/text_reading.hpp"
#include "kernel-manager/kernel/kernel_state.hpp"
#include "protocol/limits.hpp"
#include "protocol/support/run_elsewhere.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>

#include <optional>
#include <utility>

namespace cellkeep::jupyter {

namespace {

bool is_long(const ZmqMultipart& multipart) {
    std::size_t bytes = 0;
    for (const std::string_view frame : multipart.frames()) {
        bytes += frame.size();
    }
    return bytes > http::kTextReadAtOnceBytesMax;
}

}  // namespace

/// Where the answers to one ZeroMQ client go. Outlives the front harmlessly.
class ZmqClient : public session::ReplySink {
 public:
    ZmqClient(std::weak_ptr<ZmqSession> front, std::vector<std::string> identities)
        : front_(std::move(front)), identities_(std::move(identities)) {}

    void deliver(const protocol::Message& message) override {
        // Ignored: the session has closed and its sockets are gone.
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
    BoundSockets sockets,
    const std::shared_ptr<session::Session>& session,
    ZmqSessionConfig config) {
    BOOST_OUTCOME_TRY(
        protocol::Signer signer,
        protocol::Signer::create(sockets.connection.signature_scheme, sockets.connection.key));
    const auto front =
        std::make_shared<ZmqSession>(Key(), session, std::move(signer), io, std::move(config));
    // From here on close(), which the destructor calls, takes back whatever was done.
    BOOST_OUTCOME_TRY(front->watch(std::move(sockets)));
    session->subscribe(front.get());
    return front;
}

ZmqSession::ZmqSession(
    Key /*key*/,
    std::shared_ptr<session::Session> session,
    protocol::Signer signer,
    boost::asio::io_context& io,
    ZmqSessionConfig config)
    : session_(std::move(session)),
      signer_(std::move(signer)),
      io_(io),
      config_(std::move(config)),
      log_(session_->id(), config_.log) {}

ZmqSession::~ZmqSession() {
    close();
}

Status ZmqSession::watch(BoundSockets sockets) {
    using protocol::Channel;
    files_ = std::move(sockets.ipc_files);
    // The heart first: clients that connected before us count its beats.
    BOOST_OUTCOME_TRY(watch_heartbeat(std::move(sockets.heartbeat)));
    BOOST_OUTCOME_TRY(watch_iopub(std::move(sockets.iopub)));
    BOOST_OUTCOME_TRY(stdin_, watch_router(std::move(sockets.stdin_socket), Channel::kStdin));
    BOOST_OUTCOME_TRY(control_, watch_router(std::move(sockets.control), Channel::kControl));
    BOOST_OUTCOME_TRY(shell_, watch_router(std::move(sockets.shell), Channel::kShell));
    return ok();
}

Result<std::shared_ptr<WatchedSocket>> ZmqSession::watch_router(
    ZmqSocket socket, protocol::Channel channel) {
    SocketEvents events;
    const std::weak_ptr<ZmqSession> weak = weak_from_this();
    events.on_message = [weak, channel](ZmqMultipart multipart) {
        if (const auto self = weak.lock(); self != nullptr) {
            self->receive(channel, std::move(multipart));
        }
    };
    events.on_error = [weak, channel](const Error& error) {
        if (const auto self = weak.lock(); self != nullptr) {
            self->report(protocol::to_string(channel), error);
        }
    };
    return WatchedSocket::create(io_, std::move(socket), std::move(events));
}

Status ZmqSession::watch_iopub(ZmqSocket socket) {
    IopubConfig config;
    config.session_id = session_->id();
    config.kernel_id = session_->info().kernel_id;
    config.stall_max = config_.stall_max;
    config.on_drained = [weak = weak_from_this()] {
        if (const auto self = weak.lock(); self != nullptr && !self->closed_) {
            self->session_->resume_output();
        }
    };
    config.on_subscribers = [weak = weak_from_this()](bool anyone) {
        if (const auto self = weak.lock(); self != nullptr && !self->closed_) {
            self->connected_ = anyone ? self->session_->connect_returning_client() : nullptr;
        }
    };
    config.on_subscription = [weak = weak_from_this()] {
        if (const auto self = weak.lock(); self != nullptr && self->return_ != nullptr) {
            self->return_->note_subscription();
        }
    };
    BOOST_OUTCOME_TRY(
        iopub_, IopubPublisher::create(io_, std::move(socket), signer_, log_, std::move(config)));
    return ok();
}

Status ZmqSession::watch_heartbeat(ZmqSocket socket) {
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
    BOOST_OUTCOME_TRY(heartbeat_, WatchedSocket::create(io_, std::move(socket), std::move(events)));
    return ok();
}

void ZmqSession::receive(protocol::Channel channel, ZmqMultipart multipart) {
    if (closed_) {
        return;
    }
    if (collecting_ || config_.work_thread == nullptr || !is_long(multipart)) {
        take(channel, signer_.open(channel, multipart.frames()));
        return;
    }
    const auto& socket = socket_of(channel);
    socket->pause();
    ++checking_;
    boost::asio::co_spawn(
        io_,
        receive_long(
            weak_from_this(),
            socket,
            channel,
            std::make_shared<ZmqMultipart>(std::move(multipart))),
        boost::asio::detached);
}

boost::asio::awaitable<void> ZmqSession::receive_long(
    std::weak_ptr<ZmqSession> session,
    std::weak_ptr<WatchedSocket> socket,
    protocol::Channel channel,
    std::shared_ptr<ZmqMultipart> multipart) {
    using Checked = Result<protocol::Signer::Checked>;
    auto self = session.lock();
    if (self == nullptr) {
        co_return;
    }
    boost::asio::io_context& io = self->io_;
    WorkThread& thread = *self->config_.work_thread;
    std::function<std::optional<Checked>()> slice =
        [check = self->signer_.check(), channel, multipart = std::move(multipart)] {
            Checked checked = check(channel, multipart->frames());
            if (checked.has_value() && checked.value().message.has_value()) {
                // Scanned now, not on the event loop.
                (void)checked.value().message.value().message.outline();
            }
            return std::optional(std::move(checked));
        };
    self.reset();  // it may end meanwhile, and its sockets with it: ZeroMQ waits for them
    Checked checked = co_await run_elsewhere<Checked>(io, thread, std::move(slice));
    if (self = session.lock(); self != nullptr) {
        --self->checking_;
    }
    if (self != nullptr && !self->closed_) {
        self->take(channel, self->signer_.admit(std::move(checked)));
    }
    if (const auto paused = socket.lock(); paused != nullptr) {
        paused->resume();
    }
}

void ZmqSession::take(protocol::Channel channel, Result<protocol::SignedMessage> opened) {
    if (opened.has_error()) {
        // Never answered: who cannot sign gets no sign of life, and no error to work with.
        report(protocol::to_string(channel), opened.error());
        return;
    }
    submit(std::move(opened.value().identities), std::move(opened.value().message));
}

void ZmqSession::submit(Identities identities, protocol::Message request) {
    if (closed_) {
        return;
    }
    note_traffic();
    if (must_hold(identities, request.channel())) {
        hold_request({std::move(identities), std::move(request)});
        return;
    }
    begin_request(std::move(identities), std::move(request));
}

void ZmqSession::begin_request(Identities identities, protocol::Message request) {
    iopub_->look_for_subscribers();
    std::shared_ptr<session::ReplySink> client = client_for(std::move(identities));
    session_->submit(std::move(request), std::move(client));
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
    replies_.push_back({identities, message, signer_.begin_signing(message)});
    if (!replying_) {
        send_replies();
    }
}

/// In order, so a reply waits for a large one before it.
void ZmqSession::send_replies() {
    while (!closed_ && !replies_.empty()) {
        Reply& first = replies_.front();
        if (!first.signing.advance(limits::kSignTurnBytesMax)) {
            replying_ = true;
            boost::asio::post(io_, [weak = weak_from_this()] {
                if (const auto self = weak.lock(); self != nullptr) {
                    self->replying_ = false;
                    self->send_replies();
                }
            });
            return;
        }
        Reply ready = std::move(first);
        replies_.pop_front();
        std::string signature = ready.signing.finish();
        send({std::move(ready.identities), std::move(ready.message), std::move(signature)});
    }
}

const std::shared_ptr<WatchedSocket>& ZmqSession::socket_of(protocol::Channel channel) const {
    if (channel == protocol::Channel::kControl) {
        return control_;
    }
    return channel == protocol::Channel::kStdin ? stdin_ : shell_;
}

void ZmqSession::send(LateReply reply) {
    if (closed_) {
        return;
    }
    note_traffic();
    if (return_ != nullptr && return_->waits_for(reply.identities)) {
        return_->keep(std::move(reply));
        return;
    }
    const protocol::Message& message = reply.message;
    const protocol::Channel channel = message.channel();
    const std::shared_ptr<WatchedSocket>& socket = socket_of(channel);
    std::vector<std::string_view> frames(reply.identities.begin(), reply.identities.end());
    const std::vector<std::string_view> signed_frames = signer_.frames(message, reply.signature);
    frames.insert(frames.end(), signed_frames.begin(), signed_frames.end());
    const Result<SendOutcome> outcome = socket->send(frames);
    const bool gone = outcome.has_value() && outcome.value() == SendOutcome::kPeerGone;
    if (gone && return_ != nullptr && return_->may_keep()) {
        return_->keep(std::move(reply));
        return;
    }
    const std::string what =
        std::string(protocol::to_string(channel)) + " " + message.header().msg_type;
    if (outcome.has_error()) {
        log_.record(PeerEvent::kSocketFailed, what + ": " + outcome.error().message());
    } else if (gone) {
        log_.record(PeerEvent::kUndeliverable, what + ": the client is not connected");
    } else if (outcome.value() == SendOutcome::kFull) {
        log_.record(PeerEvent::kUndeliverable, what + ": the client does not read");
    }
    if (message.header().msg_type == "shutdown_reply" && config_.on_shutdown_answered) {
        // Later: we are inside the session, which still has to say idle.
        boost::asio::post(io_, config_.on_shutdown_answered);
    }
}

void ZmqSession::on_output(const session::OutputEntry& entry) {
    if (closed_) {
        return;
    }
    if (entry.message.header().msg_type == "status") {
        note_traffic();  // a client that waits for idle may go on
    }
    iopub_->publish(entry.message);
}

bool ZmqSession::congested() const {
    return !closed_ && iopub_->congested();
}

void ZmqSession::close() {
    if (closed_) {
        return;
    }
    connected_.reset();
    for (Reply& last : std::exchange(replies_, {})) {
        while (!last.signing.advance(limits::kSignTurnBytesMax)) {
            // There is no later turn.
        }
        std::string signature = last.signing.finish();
        send({std::move(last.identities), std::move(last.message), std::move(signature)});
    }
    if (return_ != nullptr) {
        return_->stop();
    }
    closed_ = true;
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
    files_.remove();
}

}  // namespace cellkeep::jupyter
