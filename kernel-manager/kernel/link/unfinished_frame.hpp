// SPDX-License-Identifier: Apache-2.0
//
// The frame in the middle of which a kernel link is: the memory that it may fill (FrameMemory), and
// how long the link waits for its rest. Only waiting counts, that is time in which the server reads
// and the kernel sends nothing: a server that is slow or pauses for a client breaks no link.
// io_context thread only.
#pragma once

#include "kernel-manager/kernel/link/frame_memory.hpp"
#include "protocol/limits.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

namespace cellkeep::session {

struct FrameBounds {
    /// All waiting for one frame, beyond the time that its bytes take at bytes_per_second.
    std::chrono::milliseconds wait = limits::kLinkFrameWaitMax;
    std::size_t bytes_per_second = limits::kLinkFrameBytesPerSecond;
    /// A frame larger than this needs a claim before it is read.
    std::size_t unclaimed = limits::kLinkFrameUnclaimedBytesMax;
};

class UnfinishedFrame {
 public:
    struct Events {
        /// The memory that update() found missing is there. Must only post work to the loop.
        std::function<void()> on_memory;
        /// The rest of the frame did not come in time.
        std::function<void()> on_late;
    };

    UnfinishedFrame(boost::asio::io_context& io, FrameBounds bounds, Events events);
    UnfinishedFrame(const UnfinishedFrame&) = delete;
    UnfinishedFrame& operator=(const UnfinishedFrame&) = delete;
    ~UnfinishedFrame() { end_wait(); }

    /// `arrived` bytes of it are here, of `announced` in all (0: not known yet). If
    /// waits_for_memory() is true afterwards, read nothing more before on_memory.
    void update(std::size_t arrived, std::size_t announced);
    bool waits_for_memory() const { return claim_.waits(); }
    /// The link waits for the kernel's next bytes, until end_wait(). Without a frame there is no
    /// deadline.
    void begin_wait();
    void end_wait();
    /// The frame has been dealt with, or the link has closed: gives the memory back.
    void finish();

 private:
    std::chrono::nanoseconds time_left() const;

    FrameBounds bounds_;
    FrameMemory::Claim claim_;
    boost::asio::steady_timer timer_;
    std::function<void()> on_late_;
    std::size_t arrived_ = 0;
    std::chrono::steady_clock::time_point wait_begun_;
    std::chrono::nanoseconds waited_{0};
    bool waiting_ = false;
    /// Counts waits. A timer's handler may be queued already when its wait ends, and outlive this.
    std::shared_ptr<std::size_t> wait_number_ = std::make_shared<std::size_t>(0);
};

}  // namespace cellkeep::session
