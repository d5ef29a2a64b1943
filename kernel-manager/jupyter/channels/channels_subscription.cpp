// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/channels/channels_subscription.hpp"

#include "protocol/header.hpp"
#include "protocol/json.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::jupyter {

namespace {

constexpr std::size_t kMessagesMax = limits::kChannelsWaitingMessagesMax;
constexpr std::size_t kBytesMax = limits::kChannelsWaitingBytesMax;

}  // namespace

ChannelsSubscription::ChannelsSubscription(
    boost::asio::io_context& io,
    std::shared_ptr<session::Session> session,
    std::shared_ptr<PeerLog> log,
    SubscriptionConfig config)
    : session_(std::move(session)),
      log_(std::move(log)),
      config_(config),
      stall_timer_(io),
      hold_timer_(io) {}

ChannelsSubscription::~ChannelsSubscription() {
    if (subscribed_) {
        session_->unsubscribe(this);
    }
}

void ChannelsSubscription::begin_now(std::vector<session::OutputEntry> past) {
    follow(std::move(past));
}

void ChannelsSubscription::begin_after(std::uint64_t sequence) {
    session::OutputJournal::Replay replay = session_->journal().since(sequence);
    note_lost(replay.missed, "the journal no longer keeps what a client missed");
    follow(std::move(replay.entries));
}

void ChannelsSubscription::follow(std::vector<session::OutputEntry> entries) {
    output_.assign(
        std::make_move_iterator(entries.begin()), std::make_move_iterator(entries.end()));
    seen_ = session_->journal().last_sequence();
    parked_ = false;
    recount_unkept();
    if (!std::exchange(subscribed_, true)) {
        session_->subscribe(this);
    }
}

void ChannelsSubscription::go_on(PassedPlace place) {
    seen_ = place.seen;
    parked_ = true;
    lost_ = place.lost;
    lost_parent_ = std::move(place.lost_parent);
    for (PassedPlace::Answer& answer : place.answers) {
        extra_bytes_ += answer.message.frame().size();
        extras_.push_back({std::move(answer.message), answer.after, false});
    }
}

PassedPlace ChannelsSubscription::pass_on() const {
    PassedPlace place;
    place.seen = output_.empty() ? seen_ : output_.front().sequence - 1;
    place.lost = lost_;
    place.lost_parent = lost_parent_;
    for (const auto* extras : {&urgent_, &extras_}) {
        for (const Extra& extra : *extras) {
            place.answers.push_back({extra.message, extra.after});
        }
    }
    return place;
}

bool ChannelsSubscription::unread_at_most(std::size_t bytes) const {
    std::size_t unread = sent_bytes_ + extra_bytes_;
    for (const session::OutputEntry& entry : output_) {
        if (unread > bytes) {
            break;
        }
        unread += entry.message.frame().size();
    }
    return unread <= bytes;
}

std::uint64_t ChannelsSubscription::attach(Wake wake) {
    detach(attachment_);
    hold_timer_.cancel();
    if (parked_) {
        begin_after(seen_);
    }
    wake_ = std::move(wake);
    return ++attachment_;
}

void ChannelsSubscription::detach(std::uint64_t attachment) {
    if (attachment != attachment_ || !attached()) {
        return;
    }
    wake_ = nullptr;
    take_back();
    arm(hold_timer_, config_.hold_max, &ChannelsSubscription::end_hold);
}

/// What was sent last stands first again, in order.
void ChannelsSubscription::take_back() {
    while (!sent_.empty()) {
        Sent& last = sent_.back();
        if (last.sequence > 0) {
            output_.push_front({last.sequence, std::move(last.message)});
        } else if (!last.fleeting) {
            extra_bytes_ += last.message.frame().size();
            extras_.push_front({std::move(last.message), last.after, false});
        }
        sent_.pop_back();
    }
    sent_bytes_ = 0;
    sent_gone_ = 0;
    std::erase_if(extras_, [this](const Extra& extra) {
        extra_bytes_ -= extra.fleeting ? extra.message.frame().size() : 0;
        return extra.fleeting;
    });
    recount_unkept();
}

void ChannelsSubscription::wake() const {
    if (wake_) {
        wake_();
    }
}

std::optional<protocol::Message> ChannelsSubscription::next(std::uint64_t attachment) {
    if (attachment != attachment_ || !attached()) {
        return std::nullopt;
    }
    if (!urgent_.empty()) {
        return take_extra(urgent_);
    }
    const bool extra_first =
        !extras_.empty() && (output_.empty() || extras_.front().after < output_.front().sequence);
    if (extra_first) {
        return take_extra(extras_);
    }
    if (lost_ > 0) {
        return take_notice();
    }
    if (!output_.empty()) {
        return take_output();
    }
    behind_ = false;
    return std::nullopt;
}

protocol::Message ChannelsSubscription::take_extra(std::deque<Extra>& extras) {
    Extra extra = std::move(extras.front());
    extras.pop_front();
    extra_bytes_ -= extra.message.frame().size();
    keep_sent({extra.message, 0, extra.after, extra.fleeting});
    return extra.message;
}

protocol::Message ChannelsSubscription::take_output() {
    session::OutputEntry entry = std::move(output_.front());
    output_.pop_front();
    if (unkept_ > 0) {
        --unkept_;
        unkept_bytes_ -= entry.message.frame().size();
    }
    const bool was_congested = congested_;
    update_congestion();
    keep_sent({entry.message, entry.sequence, 0, false});
    resume_if(was_congested);
    return entry.message;
}

/// A message in the place of those that are missing, for the person who reads the cell.
protocol::Message ChannelsSubscription::take_notice() {
    const std::uint64_t lost = std::exchange(lost_, 0);
    std::string sender = "cellkeep-" + session_->id();
    std::string parent = std::exchange(lost_parent_, "{}");
    std::uint64_t after = seen_;
    if (!output_.empty()) {
        const protocol::Message& upcoming = output_.front().message;
        sender = upcoming.header().session;
        parent = std::string(upcoming.parent_header_json());
        after = output_.front().sequence - 1;
    }
    const std::string header =
        protocol::to_json_text(protocol::make_header("stream", sender, "cellkeep"));
    const std::string content = protocol::dump_json(
        {{"name", "stderr"},
         {"text",
          "[Cellkeep: " + std::to_string(lost) +
              " output messages are missing here, because this client did not take them in "
              "time.]\n"}});
    auto message = protocol::Message::create(
        {.channel = protocol::Channel::kIopub,
         .header = header,
         .parent_header = parent,
         .metadata = "{}",
         .content = content,
         .buffers = {}});
    CELLKEEP_CHECK(message.has_value());  // the parent header is one that a message had
    keep_sent({message.value(), 0, after, false});
    return std::move(message).value();
}

void ChannelsSubscription::keep_sent(Sent sent) {
    sent_bytes_ += sent.message.frame().size();
    sent_.push_back(std::move(sent));
    while (sent_.size() > limits::kChannelsUnprovenMessagesMax ||
           (sent_bytes_ > limits::kChannelsUnprovenBytesMax && sent_.size() > 1)) {
        sent_bytes_ -= sent_.front().message.frame().size();
        sent_.pop_front();
        ++sent_gone_;
    }
}

void ChannelsSubscription::acknowledge(std::uint64_t attachment, std::uint64_t messages) {
    if (attachment != attachment_ || !attached()) {
        return;
    }
    while (sent_gone_ < messages && !sent_.empty()) {
        sent_bytes_ -= sent_.front().message.frame().size();
        sent_.pop_front();
        ++sent_gone_;
    }
}

void ChannelsSubscription::notify(protocol::Message message) {
    extra_bytes_ += message.frame().size();
    extras_.push_back({std::move(message), session_->journal().last_sequence(), true});
    wake();
}

void ChannelsSubscription::deliver(const protocol::Message& message) {
    const bool urgent = message.channel() == protocol::Channel::kControl;
    std::deque<Extra>& extras = urgent ? urgent_ : extras_;
    extras.push_back({message, urgent ? 0 : session_->journal().last_sequence(), false});
    extra_bytes_ += message.frame().size();
    while (!attached() && full() && extras.size() > 1) {
        log_->record(PeerEvent::kUndeliverable, "too many answers wait for a client that is away");
        extra_bytes_ -= extras.front().message.frame().size();
        extras.pop_front();
    }
    wake();
}

bool ChannelsSubscription::is_waiting(std::string_view msg_id) const {
    return std::any_of(extras_.begin(), extras_.end(), [&](const Extra& extra) {
        return extra.message.header().msg_id == msg_id;
    });
}

bool ChannelsSubscription::full() const {
    return extras_.size() + urgent_.size() >= kMessagesMax || extra_bytes_ >= kBytesMax;
}

void ChannelsSubscription::on_output(const session::OutputEntry& entry) {
    output_.push_back(entry);
    seen_ = entry.sequence;
    count_unkept();
    if (behind_) {
        lose_unkept(unkept_);
    }
    while (unkept_ > 1 && (unkept_ > kMessagesMax || unkept_bytes_ > kBytesMax)) {
        lose_unkept(1);
    }
    update_congestion();
    wake();
}

void ChannelsSubscription::count_unkept() {
    const session::OutputJournal& journal = session_->journal();
    const std::uint64_t first_kept = journal.last_sequence() + 1 - journal.size();
    while (unkept_ < output_.size() && output_[unkept_].sequence < first_kept) {
        unkept_bytes_ += output_[unkept_].message.frame().size();
        ++unkept_;
    }
}

void ChannelsSubscription::recount_unkept() {
    unkept_ = 0;
    unkept_bytes_ = 0;
    count_unkept();
    const bool was_congested = congested_;
    update_congestion();
    resume_if(was_congested);
}

void ChannelsSubscription::lose_unkept(std::size_t messages) {
    for (std::size_t i = 0; i < messages; ++i) {
        const protocol::Message& message = output_.front().message;
        unkept_bytes_ -= message.frame().size();
        --unkept_;
        lost_parent_ = std::string(message.parent_header_json());
        output_.pop_front();
    }
    note_lost(messages, "a client does not take its output");
}

void ChannelsSubscription::note_lost(std::uint64_t messages, const char* why) {
    if (messages > 0) {
        lost_ += messages;
        lost_total_ += messages;
        log_->record(PeerEvent::kOutputDropped, std::to_string(messages) + ": " + why);
    }
}

void ChannelsSubscription::update_congestion() {
    const bool high = unkept_ >= kMessagesMax / 2 || unkept_bytes_ >= kBytesMax / 2;
    const bool low = unkept_ < kMessagesMax / 8 * 3 && unkept_bytes_ < kBytesMax / 8 * 3;
    if (!congested_ && high && !behind_) {
        congested_ = true;
        arm(stall_timer_, config_.stall_max, &ChannelsSubscription::leave_behind);
    } else if (congested_ && (low || behind_)) {
        congested_ = false;
        stall_timer_.cancel();
    }
}

/// Never from inside on_output().
void ChannelsSubscription::resume_if(bool was_congested) {
    if (was_congested && !congested_) {
        session_->resume_output();
    }
}

void ChannelsSubscription::leave_behind() {
    if (!congested_) {
        return;
    }
    behind_ = true;
    lose_unkept(unkept_);
    update_congestion();
    session_->resume_output();
    wake();
}

void ChannelsSubscription::end_hold() {
    if (!attached()) {
        park();
    }
}

void ChannelsSubscription::park() {
    hold_timer_.cancel();
    if (parked_) {
        return;
    }
    parked_ = true;
    if (!output_.empty()) {
        seen_ = output_.front().sequence - 1;
        output_.clear();
    }
    recount_unkept();
    if (std::exchange(subscribed_, false)) {
        session_->unsubscribe(this);
    }
}

void ChannelsSubscription::arm(
    boost::asio::steady_timer& timer,
    std::chrono::milliseconds delay,
    void (ChannelsSubscription::*action)()) {
    timer.expires_after(delay);
    timer.async_wait([weak = weak_from_this(), action](const boost::system::error_code& error) {
        const std::shared_ptr<ChannelsSubscription> self = weak.lock();
        if (self != nullptr && !error) {
            (self.get()->*action)();
        }
    });
}

}  // namespace cellkeep::jupyter
