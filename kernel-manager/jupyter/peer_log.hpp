// SPDX-License-Identifier: Apache-2.0
//
// Counts what a Jupyter front refused or lost, and logs it: each kind at most once per period with
// how many were not logged, so that a hostile or broken peer cannot fill the log.
// All calls on the io_context thread.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace cellkeep::jupyter {

enum class PeerEvent {
    kRejected,           // bad signature, replay, structure or size: never answered
    kUndeliverable,      // an answer whose client is gone or does not read its answers
    kSubscriberStepped,  // output went on without a subscriber that did not read
    kOutputDropped,      // output that a client never gets
    kSocketFailed,       // a socket no longer works
};
inline constexpr std::size_t kPeerEventCount = 5;

std::string_view to_string(PeerEvent event);

class PeerLog {
 public:
    using Write = std::function<void(const std::string&)>;
    /// write may be empty.
    PeerLog(std::string session_id, Write write, std::string front = "zmq");

    void record(PeerEvent event, std::string_view detail);
    std::uint64_t count(PeerEvent event) const;

    static constexpr std::chrono::seconds kPeriod{1};

 private:
    struct Kind {
        std::uint64_t count = 0;
        std::uint64_t logged = 0;
        std::chrono::steady_clock::time_point last;
    };
    std::string name_;  // of the front and the session
    Write write_;
    std::array<Kind, kPeerEventCount> kinds_;
};

}  // namespace cellkeep::jupyter
