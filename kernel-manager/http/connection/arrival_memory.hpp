// SPDX-License-Identifier: Apache-2.0
//
// The memory of what clients are still sending: request bodies that are read whole, and WebSocket
// messages. Each may be many megabytes, and thousands of connections may each send all but the last
// byte of one. So what is longer than limits::kArrivalFreeBytesMax is read only while a claim on
// its bytes is held. A claim that does not fit waits, and its client feels back-pressure. One
// principal gets at most a share, so that it cannot keep the others waiting. Claims of one
// principal are served in their order; principals take turns. io_context thread only.
#pragma once

#include "protocol/limits.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace cellkeep::http {

struct ArrivalState;

class ArrivalMemory {
 public:
    struct Bounds {
        std::size_t bytes_max = limits::kArrivalBytesMax;
        std::size_t principal_bytes_max = limits::kArrivalPrincipalBytesMax;
        std::chrono::milliseconds wait_max = limits::kArrivalWaitMax;
    };

    /// What one request or message holds, until it ends. It may outlive the ArrivalMemory.
    class Claim {
     public:
        Claim(Claim&&) noexcept;
        Claim& operator=(Claim&&) noexcept;
        Claim(const Claim&) = delete;
        Claim& operator=(const Claim&) = delete;
        ~Claim();

        /// Returns true when the claim holds at least that many bytes in all, at once or after a
        /// wait. Returns false after wait_max, after close(), and if the bytes exceed a
        /// principal's share; what the claim held before stays. One call at a time; the claim must
        /// stay where it is until then.
        boost::asio::awaitable<bool> grow_to(std::size_t bytes);
        std::size_t held() const { return held_; }
        /// A claim on what this one held; this one holds nothing then.
        Claim split();
        void release();

     private:
        friend class ArrivalMemory;
        Claim(std::shared_ptr<ArrivalState> state, std::string principal);
        std::shared_ptr<ArrivalState> state_;  // null: moved from
        std::string principal_;
        std::size_t held_ = 0;
    };

    explicit ArrivalMemory(const Bounds& bounds);

    /// A claim that holds nothing yet.
    Claim make_claim(std::string principal) const { return {state_, std::move(principal)}; }
    /// The server ends: no claim waits any more, and none grows.
    void close();
    /// Bytes that claims hold.
    std::size_t used() const;
    /// Claims that wait.
    std::size_t waiting() const;

 private:
    std::shared_ptr<ArrivalState> state_;
};

}  // namespace cellkeep::http
