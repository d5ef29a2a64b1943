// SPDX-License-Identifier: Apache-2.0
//
// The server's end of the kernel link: one stream socket carrying length-prefixed frames
// (protocol/PROTOCOL.md). Owns the socket. The peer is hostile until proven otherwise: a malformed
// frame closes the link. Reading can be paused, which is the back-pressure a flooding kernel feels;
// writes are queued up to limits::kLinkWriteQueueBytesMax. A kernel that says much gets one turn of
// the loop after another, each within limits::kLinkTurnBytesMax and kLinkTurnTimeMax, and every
// other session its own in between. A frame that has begun must arrive in time, and a large one
// waits for memory (unfinished_frame.hpp). io_context thread only.
#pragma once

#include "kernel-manager/kernel/link/message_intake.hpp"
#include "kernel-manager/kernel/link/unfinished_frame.hpp"
#include "protocol/frame.hpp"
#include "protocol/message.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"
#include "protocol/support/wakeup.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <sys/uio.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace cellkeep::session {

class KernelLink : public std::enable_shared_from_this<KernelLink> {
 public:
    struct Events {
        std::function<void(protocol::Message)> on_message;
        /// Once, when the peer has closed or broke the protocol. Not after close().
        std::function<void(const Error&)> on_closed;
    };

    /// The socket must be non-blocking. Call start() to begin reading.
    static Result<std::shared_ptr<KernelLink>> create(
        boost::asio::io_context& io, UniqueFd socket, Events events, FrameBounds bounds = {});

    KernelLink(const KernelLink&) = delete;
    KernelLink& operator=(const KernelLink&) = delete;
    ~KernelLink() = default;

    void start();
    /// kLimitExceeded when too much waits already; kConflict after the link has closed. The
    /// descriptor, if there is one, goes with the message's first byte (SCM_RIGHTS, unix(7)).
    Status send(const protocol::Message& message, UniqueFd descriptor = {});
    void pause_reading();
    void resume_reading();
    /// Handles what has come, up to limits::kLinkTurnBytesMax of it, until enough() says so after a
    /// message. The rest follows in later turns. Time is no bound: a thread that had to wait for
    /// its processor must not miss the message.
    void catch_up(const std::function<bool()>& enough);
    /// Handles what is in the socket at this moment, and no more: used when the kernel's process
    /// has ended. Something that it left behind may still write, and must not keep us here: a frame
    /// of more than limits::kLinkDrainFrameBytesMax is passed on without a look into it.
    void drain();
    /// Nothing is half read, waits to be read here or to be written. What waits in the socket does
    /// not count.
    bool is_at_rest() const;
    /// The socket, for another program; this is closed then. Precondition: is_at_rest().
    UniqueFd pass_on();
    /// No event after this returns.
    void close();

 private:
    /// A frame with its length, on its way to the kernel.
    struct Write {
        std::string prefix;
        protocol::Message message;  // shares its bytes with its other owners
        UniqueFd descriptor;        // until its first byte has gone

        std::size_t size() const { return prefix.size() + message.frame().size(); }
        /// What follows the first offset bytes.
        std::span<const iovec> left(std::size_t offset, std::array<iovec, 2>& pieces) const;
    };

    KernelLink(boost::asio::io_context& io, Events events, FrameBounds bounds);
    void wait_readable();
    /// What may still be done in this turn of the loop.
    struct Turn {
        std::size_t bytes = 0;
        std::chrono::steady_clock::time_point until;
        bool draining = false;  // no bound: the process has ended, and what there is is bounded

        bool is_over() const;
    };
    static Turn begin_turn();
    enum class ReadOutcome { kMore, kEmpty, kClosed };
    ReadOutcome read_some(Turn turn);
    /// enough: as in catch_up(); null: never.
    bool hand_out(Turn& turn, const std::function<bool()>* enough = nullptr);
    Result<std::optional<protocol::Message>> next_message(Turn& turn);
    void go_on_soon();
    void flush();
    void wait_writable();
    void fail(const Error& error);

    boost::asio::posix::stream_descriptor socket_;
    Wakeups& wakeups_;
    Events events_;
    protocol::LinkDecoder decoder_;
    MessageIntake intake_;
    UnfinishedFrame frame_;
    bool frame_taken_ = false;  // from the decoder: it is in the intake, or was
    std::deque<Write> writes_;  // the first may be partly written
    std::size_t write_offset_ = 0;
    std::size_t write_bytes_ = 0;
    bool paused_ = false;
    bool waiting_readable_ = false;
    bool going_on_ = false;  // a turn is posted: nothing is read before it
    bool waiting_writable_ = false;
    bool closed_ = false;
};

}  // namespace cellkeep::session
