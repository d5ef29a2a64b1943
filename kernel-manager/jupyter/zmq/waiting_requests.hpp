// SPDX-License-Identifier: Apache-2.0
//
// Requests that came over ZeroMQ and wait: while another program is about to take the server's
// place, and in that one, until clients are back that want to see what their requests cause. They
// are verified, and have not begun. Keeps whatever it gets; its owner stops reading when it has
// more than may pass. io_context thread only.
#pragma once

#include "protocol/message.hpp"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::jupyter {

/// Of one session, and their bytes, that pass to another program.
inline constexpr std::size_t kWaitingRequestsMax = 64;
inline constexpr std::size_t kWaitingRequestsBytesMax = 4U << 20U;

struct WaitingRequest {
    std::vector<std::string> identities;
    protocol::Message message;
};

/// Whether the client has chosen its identity, and so has it again when it connects again: ZeroMQ's
/// own begin with a zero byte (zmq_setsockopt(3), ZMQ_ROUTING_ID).
inline bool is_named(const std::vector<std::string>& identities) {
    return !identities.empty() && !identities.front().empty() && identities.front().front() != '\0';
}

class WaitingRequests {
 public:
    void add(WaitingRequest request) {
        bytes_ += request.message.frame().size();
        requests_.push_back(std::move(request));
    }
    std::size_t count() const { return requests_.size(); }
    std::size_t bytes() const { return bytes_; }
    bool may_pass() const {
        return requests_.size() <= kWaitingRequestsMax && bytes_ <= kWaitingRequestsBytesMax;
    }
    /// In the order in which they came.
    std::vector<WaitingRequest> take_all() {
        bytes_ = 0;
        return std::exchange(requests_, {});
    }

 private:
    std::vector<WaitingRequest> requests_;
    std::size_t bytes_ = 0;
};

}  // namespace cellkeep::jupyter
