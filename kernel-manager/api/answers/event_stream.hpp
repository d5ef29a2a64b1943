// SPDX-License-Identifier: Apache-2.0
//
// The events of one execution as a body that is written while they happen: server-sent events
// (HTML standard, section 9.2) or one line of JSON each. A reader that falls behind the journal
// gets an event that says what it missed. That a reader goes is noticed also while nothing happens.
#pragma once

#include "kernel-manager/execution/running_execution.hpp"
#include "kernel-manager/http/message/streaming.hpp"
#include "protocol/limits.hpp"
#include "protocol/text_pieces.hpp"

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

namespace cellkeep::api {

enum class EventFraming { kServerSent, kLines };

std::string_view media_type(EventFraming framing);

/// One event on the wire. data is the text of a JSON object without line ends; sequence 0: without
/// one.
protocol::TextPieces frame_event(
    EventFraming framing,
    std::uint64_t sequence,
    std::string_view type,
    const protocol::TextPieces& data);

/// What to do if a stream's client goes before the stream's end: at the latest when the
/// last holder goes, for a stream whose head could not be sent is never run.
class DisconnectGuard {
 public:
    explicit DisconnectGuard(std::function<void()> action) : action_(std::move(action)) {}
    DisconnectGuard(const DisconnectGuard&) = delete;
    DisconnectGuard& operator=(const DisconnectGuard&) = delete;
    ~DisconnectGuard() { act(); }
    /// Once.
    void act() {
        if (const auto action = std::exchange(action_, nullptr)) {
            action();
        }
    }
    /// The client has everything.
    void dismiss() { action_ = nullptr; }

 private:
    std::function<void()> action_;
};

struct EventStream {
    std::shared_ptr<session::Execution> execution;
    EventFraming framing = EventFraming::kServerSent;
    std::uint64_t after = 0;  // the last event that the client has
    /// The whole answer, for "finished".
    std::function<protocol::TextPieces(const session::Execution&)> answer;
    /// Null: nothing happens.
    std::shared_ptr<DisconnectGuard> on_disconnect;
    std::chrono::milliseconds heartbeat = limits::kEventHeartbeat;
    /// What another program in this process needs to go on with the stream, but for the place
    /// ("after"), which write_events() adds. Null: no other program can go on.
    nlohmann::json awaited;
};

/// Until the execution has finished and its last event is written, or was said to be known already,
/// or until another program goes on.
boost::asio::awaitable<Status> write_events(http::BodyWriter& writer, EventStream stream);

}  // namespace cellkeep::api
