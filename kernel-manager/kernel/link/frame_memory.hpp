// SPDX-License-Identifier: Apache-2.0
//
// The memory of frames that are still arriving, for all kernel links of one event loop. A kernel
// may announce a frame of limits::kFrameBytesMax and send all but its last byte, and many kernels
// may do so at once. A link reads a large frame only while it holds a claim on that many bytes.
// Claims beyond the limit wait in the order in which they came; their kernels feel back-pressure
// meanwhile. io_context thread only.
#pragma once

#include "protocol/limits.hpp"

#include <boost/asio/execution_context.hpp>

#include <cstddef>
#include <functional>
#include <list>

namespace cellkeep::session {

/// One per execution context: boost::asio::use_service<FrameMemory>(io) finds or makes it.
class FrameMemory final : public boost::asio::execution_context::service {
 public:
    // Asio finds the service by it.
    // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
    inline static boost::asio::execution_context::id id;

    /// limit: bytes, at least kFrameBytesMax, so that every frame fits when no other is there.
    explicit FrameMemory(
        boost::asio::execution_context& context, std::size_t limit = limits::kLinkFramesBytesMax);

    /// The claim of one link. Ends with its owner. Must not outlive the execution context.
    class Claim {
     public:
        /// on_granted is called when a claim that had to wait is granted: from within another
        /// claim's release(), so it must only post work to the loop.
        Claim(FrameMemory& memory, std::function<void()> on_granted);
        Claim(const Claim&) = delete;
        Claim& operator=(const Claim&) = delete;
        ~Claim() { release(); }

        /// Returns whether the bytes are granted now; else the claim waits. Preconditions: the
        /// claim neither holds bytes nor waits; bytes is at least 1 and at most the limit.
        bool take(std::size_t bytes);
        bool waits() const { return waits_; }
        std::size_t held() const { return held_; }
        /// Gives back what it holds, or waits no more. Idempotent.
        void release();

     private:
        friend class FrameMemory;
        FrameMemory& memory_;
        std::function<void()> on_granted_;
        std::size_t wanted_ = 0;
        std::size_t held_ = 0;
        bool waits_ = false;
    };

    /// Bytes that claims hold.
    std::size_t used() const { return used_; }
    std::size_t waiting() const { return waiting_.size(); }

 private:
    void shutdown() override {}
    bool fits(const Claim& claim) const { return claim.wanted_ <= limit_ - used_; }
    void grant(Claim& claim);
    void grant_waiting();

    std::size_t limit_;
    std::size_t used_ = 0;
    std::list<Claim*> waiting_;  // first come, first served
};

}  // namespace cellkeep::session
