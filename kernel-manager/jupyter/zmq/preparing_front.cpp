// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/zmq/preparing_front.hpp"

#include "protocol/limits.hpp"

#include <boost/asio/post.hpp>

#include <string_view>
#include <utility>

namespace cellkeep::jupyter {

namespace {

constexpr std::string_view kExecute = "execute_request";

/// As the topics of IopubPublisher, of a kernel that has no id yet.
std::string preparing_topic(const protocol::Message& message) {
    return "kernel.preparing." + message.header().msg_type;
}

}  // namespace

Result<std::shared_ptr<PreparingFront>> PreparingFront::create(
    boost::asio::io_context& io, BoundSockets sockets, PreparingConfig config) {
    BOOST_OUTCOME_TRY(
        protocol::Signer signer,
        protocol::Signer::create(sockets.connection.signature_scheme, sockets.connection.key));
    std::shared_ptr<PreparingFront> front(
        new PreparingFront(io, std::move(sockets), std::move(signer), std::move(config)));
    front->tick_later();
    return front;
}

PreparingFront::PreparingFront(
    boost::asio::io_context& io,
    BoundSockets sockets,
    protocol::Signer signer,
    PreparingConfig config)
    : io_(io),
      timer_(io),
      sockets_(std::move(sockets)),
      signer_(std::move(signer)),
      config_(std::move(config)),
      messages_(protocol::make_header("status", "preparing", "cellkeep").msg_id) {}

PreparingFront::Handover PreparingFront::hand_over() {
    ended_ = true;
    timer_.cancel();
    return {std::move(sockets_), std::move(held_)};
}

void PreparingFront::tick_later() {
    timer_.expires_after(kPreparingTick);
    timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
        if (const auto self = weak.lock(); !error && self && !self->ended_) {
            self->tick();
        }
    });
}

void PreparingFront::tick() {
    beat();
    take_turn(sockets_.control, protocol::Channel::kControl);
    take_turn(sockets_.shell, protocol::Channel::kShell);
    tick_later();
}

void PreparingFront::beat() {
    for (std::size_t i = 0; i < kPreparingTurnMessagesMax; ++i) {
        const auto beat = sockets_.heartbeat.receive();
        if (beat.has_error() || !beat.value()) {
            return;  // too large a one has been thrown away
        }
        if (beat.value()->frames().size() <= limits::kHeartbeatFramesMax) {
            // Ignored: who does not read its beats has none.
            (void)sockets_.heartbeat.send(beat.value()->frames()).has_value();
        }
    }
}

void PreparingFront::take_turn(ZmqSocket& socket, protocol::Channel channel) {
    // Control is always read: nothing there waits for the kernel if there is no room.
    for (std::size_t i = 0; i < kPreparingTurnMessagesMax; ++i) {
        if (channel == protocol::Channel::kShell && held_.size() >= kHeldRequestsMax) {
            return;
        }
        const auto came = socket.receive();
        if (came.has_error() || !came.value()) {
            return;
        }
        auto opened = signer_.open(channel, came.value()->frames());
        if (opened.has_error()) {
            continue;  // as a session: who cannot sign gets no answer
        }
        answer(socket, {std::move(opened.value().identities), std::move(opened.value().message)});
    }
}

void PreparingFront::answer(ZmqSocket& socket, HeldRequest request) {
    const protocol::Message& message = request.message;
    const std::string& type = message.header().msg_type;
    const bool shutdown = type == "shutdown_request";
    if (type == "kernel_info_request" || type == "interrupt_request" || shutdown) {
        publish(messages_.status("busy", &message));
        if (type == "kernel_info_request") {
            reply(socket, request, messages_.reply(message, config_.kernel_info));
        } else {
            reply(socket, request, messages_.reply(message, {{"status", "ok"}}));
        }
        publish(messages_.status("idle", &message));
        if (type == "interrupt_request") {
            interrupt();
        }
        if (shutdown && config_.on_shutdown_answered) {
            boost::asio::post(io_, config_.on_shutdown_answered);
        }
        return;
    }
    if (held_.size() >= kHeldRequestsMax) {
        reply(
            socket,
            request,
            messages_.error_reply(message, "KernelBusy", "The kernel is being prepared."));
        return;
    }
    if (type == kExecute && !std::exchange(noticed_, true)) {
        publish(messages_.stream("stderr", config_.notice, message.header_json()));
    }
    held_.push_back(std::move(request));
}

void PreparingFront::interrupt() {
    std::deque<HeldRequest> kept;
    for (HeldRequest& request : std::exchange(held_, {})) {
        if (request.message.header().msg_type != kExecute) {
            kept.push_back(std::move(request));
            continue;
        }
        constexpr const char* kName = "KeyboardInterrupt";
        constexpr const char* kWhy = "Interrupted before the environment was there.";
        publish(messages_.status("busy", &request.message));
        publish(messages_.error(request.message, kName, kWhy));
        reply(sockets_.shell, request, messages_.error_reply(request.message, kName, kWhy));
        publish(messages_.status("idle", &request.message));
    }
    held_ = std::move(kept);
}

void PreparingFront::reply(
    ZmqSocket& socket, const HeldRequest& request, const protocol::Message& message) {
    send(socket, request.identities, message);
}

void PreparingFront::publish(const protocol::Message& message) {
    send(sockets_.iopub, {preparing_topic(message)}, message);
}

void PreparingFront::send(
    ZmqSocket& socket, const std::vector<std::string>& prefix, const protocol::Message& message) {
    const std::string signature = signer_.sign(
        message.header_json(),
        message.parent_header_json(),
        message.metadata_json(),
        message.content_json());
    std::vector<std::string_view> frames(prefix.begin(), prefix.end());
    const auto signed_frames = signer_.frames(message, signature);
    frames.insert(frames.end(), signed_frames.begin(), signed_frames.end());
    // Ignored: a client that is gone or does not read gets no answer from a session either.
    (void)socket.send(frames).has_value();
}

}  // namespace cellkeep::jupyter
