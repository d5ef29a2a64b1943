// SPDX-License-Identifier: Apache-2.0
//
// What the parts of one connection share: its socket, its limits, and until when they wait for it.
// One io_context thread.
#pragma once

#include "kernel-manager/http/listener.hpp"
#include "kernel-manager/http/socket/byte_stream.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <memory>

namespace cellkeep::http {

/// Failures of asynchronous operations are values, not exceptions.
inline constexpr auto kAwait = boost::asio::as_tuple(boost::asio::use_awaitable);
/// One read or write of a body.
inline constexpr std::size_t kReadBytes = 64ULL << 10U;

/// Until when a connection waits. When it is due, its watcher calls expire() and cancels what
/// waits.
class Deadline {
 public:
    using Clock = std::chrono::steady_clock;

    /// Each new deadline forgets that the one before has expired.
    void set(std::chrono::milliseconds from_now) { set_at(Clock::now() + from_now); }
    void set_at(Clock::time_point when) {
        at_ = when;
        expired_ = false;
    }
    void clear() { at_ = Clock::time_point::max(); }
    Clock::time_point at() const { return at_; }
    bool due(Clock::time_point now) const { return now >= at_; }
    void expire() { expired_ = true; }
    /// Whether it has expired since the last set().
    bool expired() const { return expired_; }

 private:
    Clock::time_point at_ = Clock::time_point::max();
    bool expired_ = false;
};

struct Wire {
    Wire(std::shared_ptr<ByteStream> connected, const ConnectionLimits& bounds)
        : stream(std::move(connected)), limits(bounds) {}
    std::shared_ptr<ByteStream> stream;
    ConnectionLimits limits;
    Deadline deadline;
};

}  // namespace cellkeep::http
