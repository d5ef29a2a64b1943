// SPDX-License-Identifier: Apache-2.0
//
// The way back to a client: where the answers to its requests go.
#pragma once

#include "protocol/message.hpp"

namespace cellkeep::session {

/// Where the answers to one client's requests go. Called on the io_context thread, never from
/// inside submit(). The session keeps it alive until the request it came with is answered.
class ReplySink {
 public:
    ReplySink() = default;
    ReplySink(const ReplySink&) = delete;
    ReplySink& operator=(const ReplySink&) = delete;
    virtual ~ReplySink() = default;
    /// A reply (shell or control channel) or an input_request (stdin channel).
    virtual void deliver(const protocol::Message& message) = 0;
};

}  // namespace cellkeep::session
