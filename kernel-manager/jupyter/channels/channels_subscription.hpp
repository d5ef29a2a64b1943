// SPDX-License-Identifier: Apache-2.0
//
// One client's place in a session, whether its WebSocket is open or not: what it still has to be
// sent, what it was sent and has not proved to have read, and the answers to its requests. Output
// waits here by reference to the journal's messages; what the journal has let go is bounded: first
// the session waits, then the client is left behind and gets a notice of how much it lost. Answers
// are never dropped while the client is there. Knows no sockets. All calls on the io_context
// thread.
#pragma once

#include "kernel-manager/jupyter/channels/channels_passing.hpp"
#include "kernel-manager/jupyter/peer_log.hpp"
#include "kernel-manager/kernel/reply_sink.hpp"
#include "kernel-manager/output/output_observer.hpp"
#include "kernel-manager/session/session.hpp"
#include "protocol/limits.hpp"
#include "protocol/message.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::jupyter {

struct SubscriptionConfig {
    std::chrono::milliseconds stall_max = limits::kChannelsStallMax;
    std::chrono::milliseconds hold_max = limits::kChannelsHoldMax;
    /// How long the old socket of a client that has opened a new one may still prove receipt.
    std::chrono::milliseconds settle_max{1000};
};

class ChannelsSubscription final : public session::OutputObserver,
                                   public session::ReplySink,
                                   public std::enable_shared_from_this<ChannelsSubscription> {
 public:
    ChannelsSubscription(
        boost::asio::io_context& io,
        std::shared_ptr<session::Session> session,
        std::shared_ptr<PeerLog> log,
        SubscriptionConfig config);
    ~ChannelsSubscription() override;
    ChannelsSubscription(const ChannelsSubscription&) = delete;
    ChannelsSubscription& operator=(const ChannelsSubscription&) = delete;

    // --- where it begins; each replaces what waits
    /// With what is published from now on, after these messages of the past.
    void begin_now(std::vector<session::OutputEntry> past);
    /// With what the journal keeps after this sequence number.
    void begin_after(std::uint64_t sequence);
    /// Where another program in the server's process has left it. The client is away.
    void go_on(PassedPlace place);

    // --- the client's socket
    /// Something can be sent: called at most once per next() that had nothing.
    using Wake = std::function<void()>;
    /// The client is there; an attachment before it is forgotten. Returns the number of the new
    /// attachment.
    std::uint64_t attach(Wake wake);
    /// The client left; what it has not proved to have read is to be sent again. Ignored if that
    /// attachment is not the last one.
    void detach(std::uint64_t attachment);
    bool attached() const { return static_cast<bool>(wake_); }
    /// The next message to send; it counts as sent. Nothing for an attachment that is not the last.
    std::optional<protocol::Message> next(std::uint64_t attachment);
    /// The client has proved that it read this number of messages of the attachment.
    void acknowledge(std::uint64_t attachment, std::uint64_t messages);
    /// A message for this attachment only, in its place behind what waits now; not sent again.
    void notify(protocol::Message message);
    /// Too many answers wait: no further request of this client should be taken.
    bool full() const;

    // --- the session's side
    void on_output(const session::OutputEntry& entry) override;
    bool congested() const override { return congested_; }
    void deliver(const protocol::Message& message) override;
    /// No more output is held for the client: it gets what the journal still has when it comes
    /// back. Answers are kept.
    void park();
    bool parked() const { return parked_; }
    /// For another program; without the key. Precondition: the client is away.
    PassedPlace pass_on() const;
    /// Of the answers that it passes.
    std::size_t passed_bytes() const { return extra_bytes_; }

    /// The client has at most so many bytes still to get, or to prove that it has read them.
    bool unread_at_most(std::size_t bytes) const;
    /// Everything that was sent is proved to be read.
    bool settled() const { return sent_.empty(); }
    std::size_t waiting() const { return output_.size(); }
    /// An answer or a question with this msg_id is still to be sent.
    bool is_waiting(std::string_view msg_id) const;
    std::uint64_t lost() const { return lost_total_; }

 private:
    /// Anything but numbered output.
    struct Extra {
        protocol::Message message;
        std::uint64_t after = 0;  // sent behind output of this sequence number
        bool fleeting = false;    // worthless to a later attachment
    };
    struct Sent {
        protocol::Message message;
        std::uint64_t sequence = 0;  // 0: an extra
        std::uint64_t after = 0;
        bool fleeting = false;
    };

    void follow(std::vector<session::OutputEntry> entries);
    void take_back();
    void wake() const;
    protocol::Message take_extra(std::deque<Extra>& extras);
    protocol::Message take_notice();
    protocol::Message take_output();
    void keep_sent(Sent sent);
    void count_unkept();
    void recount_unkept();
    void lose_unkept(std::size_t messages);
    void note_lost(std::uint64_t messages, const char* why);
    void update_congestion();
    void resume_if(bool was_congested);
    void leave_behind();
    void arm(
        boost::asio::steady_timer& timer,
        std::chrono::milliseconds delay,
        void (ChannelsSubscription::*action)());
    void end_hold();

    std::shared_ptr<session::Session> session_;
    std::shared_ptr<PeerLog> log_;
    SubscriptionConfig config_;
    boost::asio::steady_timer stall_timer_;
    boost::asio::steady_timer hold_timer_;

    std::deque<session::OutputEntry> output_;  // without gaps
    std::uint64_t seen_ = 0;                   // the last sequence number that came by
    std::size_t unkept_ = 0;                   // first ones of output_ that the journal let go
    std::size_t unkept_bytes_ = 0;
    std::deque<Extra> urgent_;  // control answers: before everything else
    std::deque<Extra> extras_;
    std::size_t extra_bytes_ = 0;

    std::deque<Sent> sent_;  // not proved to be read
    std::size_t sent_bytes_ = 0;
    std::uint64_t sent_gone_ = 0;  // of this attachment, no longer in sent_
    std::uint64_t attachment_ = 0;
    Wake wake_;

    std::uint64_t lost_ = 0;  // not yet in a notice
    std::uint64_t lost_total_ = 0;
    std::string lost_parent_ = "{}";
    bool subscribed_ = false;
    bool parked_ = false;
    bool congested_ = false;
    bool behind_ = false;  // left behind until it has caught up
};

}  // namespace cellkeep::jupyter
