// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/zmq/iopub_publisher.hpp"

#include "protocol/limits.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace cellkeep::jupyter {
namespace {

/// ZeroMQ tells of a subscriber that reads again by its descriptor, but may do so while we are
/// inside a send and cannot notice (its XPUB socket always claims to be writable). Hence another
/// look.
constexpr std::chrono::milliseconds kRetryPeriod{20};

/// A message that ZeroMQ sends from where it is. Released on ZeroMQ's thread.
class SentMessage {
 public:
    SentMessage(protocol::Message message, std::shared_ptr<std::atomic<std::size_t>> gauge)
        : message_(std::move(message)), gauge_(std::move(gauge)) {
        gauge_->fetch_add(message_.frame().size());
    }
    SentMessage(const SentMessage&) = delete;
    SentMessage& operator=(const SentMessage&) = delete;
    ~SentMessage() { gauge_->fetch_sub(message_.frame().size()); }

 private:
    protocol::Message message_;
    std::shared_ptr<std::atomic<std::size_t>> gauge_;
};

}  // namespace

Result<std::shared_ptr<IopubPublisher>> IopubPublisher::create(
    boost::asio::io_context& io,
    ZmqSocket socket,
    const protocol::Signer& signer,
    PeerLog& log,
    IopubConfig config) {
    const auto publisher =
        std::make_shared<IopubPublisher>(Key(), io, signer, log, std::move(config));
    const std::weak_ptr<IopubPublisher> weak = publisher;
    SocketEvents events;
    events.on_message = [weak](const ZmqMultipart& multipart) {
        if (const auto self = weak.lock(); self != nullptr) {
            const std::string_view frame = multipart.frames().front();
            self->note_subscription(frame);
            self->greet(frame);
            if (!frame.empty() && frame.front() == '\x01' && self->config_.on_subscription) {
                self->config_.on_subscription();
            }
            if (self->keeping_ && !self->topics_.empty()) {
                self->end_keeping();
            }
        }
    };
    events.on_error = [weak](const Error& error) {
        if (const auto self = weak.lock(); self != nullptr) {
            self->log_.record(
                error.code() == ErrorCode::kLimitExceeded ? PeerEvent::kRejected
                                                          : PeerEvent::kSocketFailed,
                "iopub: " + error.message());
        }
    };
    events.on_turn = [weak] {
        if (const auto self = weak.lock(); self != nullptr) {
            self->flush();
        }
    };
    BOOST_OUTCOME_TRY(
        publisher->socket_, WatchedSocket::create(io, std::move(socket), std::move(events)));
    return publisher;
}

IopubPublisher::IopubPublisher(
    Key /*key*/,
    boost::asio::io_context& io,
    const protocol::Signer& signer,
    PeerLog& log,
    IopubConfig config)
    : signer_(signer),
      log_(log),
      config_(std::move(config)),
      timer_(io),
      unsent_bytes_(std::make_shared<std::atomic<std::size_t>>(0)) {}

void IopubPublisher::publish(const protocol::Message& message) {
    if (closed_ || !subscribed_) {
        return;
    }
    std::string topic = "kernel." + config_.kernel_id + "." + message.header().msg_type;
    enqueue(message, std::move(topic));
}

void IopubPublisher::look_for_subscribers() {
    if (!closed_ && !subscribed_) {
        socket_->look();
    }
}

void IopubPublisher::hold_back() {
    held_back_ = true;
    subscribed_ = true;  // or will be
    owes_drained_ = true;
}

void IopubPublisher::release() {
    if (closed_ || !std::exchange(held_back_, false)) {
        return;
    }
    progress_ = std::chrono::steady_clock::now();
    if (!topics_.empty()) {
        go_on_soon();
        return;
    }
    keeping_ = true;
    if (std::exchange(owes_drained_, false)) {
        config_.on_drained();
    }
    tick_in(config_.stall_max);
}

/// A subscriber is there, or none has come in time.
void IopubPublisher::end_keeping() {
    keeping_ = false;
    progress_ = std::chrono::steady_clock::now();
    while (topics_.empty() && !waiting_.empty()) {
        drop_first("no subscriber came back in time");
    }
    subscribed_ = !topics_.empty();
    timer_.cancel();
    ticking_ = false;
    go_on_soon();
}

std::size_t IopubPublisher::subscriptions() const {
    std::size_t all = 0;
    for (const auto& [topic, count] : topics_) {
        all += count;
    }
    return all;
}

/// A subscription is one frame: 1 and the topic; an unsubscription begins with 0 (ZMTP 3.1, "PUB").
/// Topics beyond the bound do not count: then others, which do, are there.
void IopubPublisher::note_subscription(std::string_view frame) {
    if (closed_ || frame.empty() || frame.size() > 1 + limits::kHeaderFieldBytesMax) {
        return;
    }
    const bool anyone = !topics_.empty();
    const std::string_view topic = frame.substr(1);
    const bool is_kept = topics_.size() < limits::kZmqTopicsMax || topics_.contains(topic);
    if (frame.front() == '\x01' && is_kept) {
        ++topics_[std::string(topic)];
    } else if (const auto found = topics_.find(topic);
               frame.front() == '\0' && found != topics_.end()) {
        topics_.erase(found);
    }
    if (anyone == topics_.empty() && config_.on_subscribers) {
        config_.on_subscribers(!anyone);
    }
}

void IopubPublisher::greet(std::string_view frame) {
    if (closed_ || frame.empty() || frame.front() != '\x01') {
        return;
    }
    subscribed_ = true;
    const std::string topic(frame.substr(1));
    if (topic.size() > limits::kHeaderFieldBytesMax) {
        log_.record(PeerEvent::kRejected, "iopub: a subscription's topic is too long");
        return;
    }
    if (waiting_.size() >= limits::kZmqWaitingMessagesMax) {
        // A peer that subscribes again and again must not push output out of the queue.
        log_.record(PeerEvent::kRejected, "iopub: too many subscriptions at once");
        return;
    }
    const protocol::Header header =
        protocol::make_header("iopub_welcome", config_.session_id, "cellkeep");
    enqueue(
        protocol::Message::make(
            protocol::Channel::kIopub,
            header,
            nlohmann::json::object(),
            nlohmann::json{{"subscription", topic}}),
        topic);
}

void IopubPublisher::enqueue(protocol::Message message, std::string topic) {
    const bool was_congested = congested();
    waiting_bytes_ += message.frame().size();
    auto signing = std::make_unique<protocol::Signing>(signer_.begin_signing(message));
    waiting_.push_back({std::move(message), std::move(topic), {}, std::move(signing)});
    if (!was_congested && !keeping_) {
        progress_ = std::chrono::steady_clock::now();
        if (!sign_first()) {
            owes_drained_ = true;
            go_on_soon();
        } else if (!send_first()) {
            owes_drained_ = true;
            tick_in(std::min(kRetryPeriod, config_.stall_max));
        }
        return;
    }
    while (keeping_ && waiting_bytes_ > kKeptOutputBytesMax) {
        drop_first("no subscriber has come back yet, and newer output needs the room");
    }
    // The session has been asked to wait. What it had read before ends up here, within these
    // bounds.
    while (waiting_.size() > limits::kZmqWaitingMessagesMax ||
           waiting_bytes_ > limits::kZmqWaitingBytesMax) {
        step_over();
    }
}

/// Works on the first one's signature for one turn; false if there is more to do.
bool IopubPublisher::sign_first() {
    Waiting& first = waiting_.front();
    if (first.signing != nullptr && first.signing->advance(limits::kSignTurnBytesMax)) {
        first.signature = first.signing->finish();
        first.signing.reset();
    }
    return first.signing == nullptr;
}

/// False if a subscriber is full. The first one is gone afterwards in every other case.
bool IopubPublisher::send_first() {
    Waiting& first = waiting_.front();
    while (!sign_first()) {
        // Only where there is no time for turns: the session ends, or a subscriber is stepped over.
    }
    const protocol::Message& message = first.message;
    const std::size_t bytes = message.frame().size();
    std::shared_ptr<const void> keep_alive;
    if (bytes >= ZmqSocket::kZeroCopyBytesMin) {
        const std::size_t unsent = unsent_bytes_->load();
        if (unsent > 0 && unsent + bytes > limits::kZmqUnsentBytesMax) {
            return false;
        }
        keep_alive = std::make_shared<const SentMessage>(message, unsent_bytes_);
    }
    std::vector<std::string_view> frames{first.topic};
    const std::vector<std::string_view> signed_frames = signer_.frames(message, first.signature);
    frames.insert(frames.end(), signed_frames.begin(), signed_frames.end());
    const Result<SendOutcome> outcome = socket_->send(frames, keep_alive);
    if (outcome.has_error()) {
        log_.record(PeerEvent::kSocketFailed, "iopub: " + outcome.error().message());
    } else if (outcome.value() == SendOutcome::kFull) {
        return false;
    }
    waiting_bytes_ -= bytes;
    waiting_.pop_front();
    return true;
}

/// From the io_context only: on_drained may call back into publish().
void IopubPublisher::flush() {
    if (held_back_ || keeping_) {
        return;
    }
    std::size_t bytes = 0;
    for (std::size_t i = 0;
         i < limits::kZmqTurnMessagesMax && !waiting_.empty() && bytes < limits::kSignTurnBytesMax;
         ++i) {
        bytes += waiting_.front().message.frame().size();
        if (!sign_first()) {
            progress_ = std::chrono::steady_clock::now();
            break;
        }
        if (!send_first()) {
            tick_in(std::min(kRetryPeriod, config_.stall_max));
            return;
        }
        progress_ = std::chrono::steady_clock::now();
    }
    if (!waiting_.empty()) {
        go_on_soon();
    } else if (std::exchange(owes_drained_, false)) {
        config_.on_drained();
    }
}

/// Sends the first one to those who read. libzmq leaves a full subscriber out from here on.
void IopubPublisher::step_over() {
    const Status lossy = socket_->set_wait_for_subscribers(/*wait=*/false);
    const bool sent = lossy.has_value() && send_first();
    const Status waiting = socket_->set_wait_for_subscribers(/*wait=*/true);
    if (lossy.has_error() || waiting.has_error()) {
        log_.record(PeerEvent::kSocketFailed, "iopub: XPUB_NODROP cannot be set");
    }
    if (sent) {
        log_.record(
            PeerEvent::kSubscriberStepped,
            "it loses what is published until it has read half of what waits for it");
    } else {
        drop_first("slow subscribers hold too many bytes");
    }
    progress_ = std::chrono::steady_clock::now();
}

/// The message is lost to all: ZeroMQ cannot say for which subscriber bytes wait inside it.
void IopubPublisher::drop_first(std::string_view why) {
    log_.record(PeerEvent::kOutputDropped, why);
    waiting_bytes_ -= waiting_.front().message.frame().size();
    waiting_.pop_front();
}

void IopubPublisher::tick_in(std::chrono::milliseconds delay) {
    if (closed_ || std::exchange(ticking_, true)) {
        return;
    }
    timer_.expires_after(delay);
    timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
        const std::shared_ptr<IopubPublisher> self = weak.lock();
        if (self != nullptr && !error) {
            self->on_tick();
        }
    });
}

/// After whatever else the io_context has to do now.
void IopubPublisher::go_on_soon() {
    if (closed_ || std::exchange(ticking_, true)) {
        return;
    }
    boost::asio::post(timer_.get_executor(), [weak = weak_from_this()] {
        if (const std::shared_ptr<IopubPublisher> self = weak.lock(); self != nullptr) {
            self->on_tick();
        }
    });
}

void IopubPublisher::on_tick() {
    ticking_ = false;
    if (closed_) {
        return;
    }
    if (keeping_) {
        end_keeping();
        return;
    }
    if (!held_back_ && !waiting_.empty() &&
        std::chrono::steady_clock::now() - progress_ >= config_.stall_max && !send_first()) {
        step_over();
    }
    flush();
}

void IopubPublisher::close() {
    if (std::exchange(closed_, true)) {
        return;
    }
    timer_.cancel();
    if (socket_->set_wait_for_subscribers(/*wait=*/false).has_value()) {
        while (!waiting_.empty() && send_first()) {
        }
    }
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
        log_.record(PeerEvent::kOutputDropped, "the session ended");
    }
    waiting_.clear();
    socket_->close();
    socket_.reset();
}

}  // namespace cellkeep::jupyter
