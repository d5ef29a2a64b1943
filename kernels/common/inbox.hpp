// SPDX-License-Identifier: Apache-2.0
//
// What arrives on the link, in order. While user code waits for input (Jupyter messaging 5.5,
// "Messages on the stdin channel") frames that are not its answer are held and come out of next()
// later, in the order they came. One thread.
#pragma once

#include "kernels/common/link.hpp"
#include "kernels/common/outbox.hpp"
#include "protocol/message.hpp"
#include "protocol/support/result.hpp"

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::kernels {

/// Frames held while code waits for input. The server sends one shell request at a time, so a
/// correct peer never comes near.
inline constexpr std::size_t kHeldMessagesMax = 1024;

struct InputReply {
    std::string value;
    bool eof = false;  // The client has no more input: {"eof": true}, a Cellkeep extension.
};

class Inbox {
 public:
    explicit Inbox(Link& link) : link_(link) {}

    int fd() const { return link_.fd(); }
    bool has_held() const { return !held_.empty(); }

    /// A held message, else a blocking read (Link::read).
    Result<std::optional<protocol::Message>> next();

    /// Sends an input_request that answers the running request. A reply to an earlier one is stale
    /// from now on.
    Status request_input(Outbox& outbox, std::string_view prompt, bool password);

    /// Reads one frame (blocks, so first wait until the descriptor is readable). The reply to the
    /// last request_input, or nothing if it was something else. kUnavailable: the link closed.
    Result<std::optional<InputReply>> read_input();

 private:
    Link& link_;
    std::deque<protocol::Message> held_;
    std::string input_request_id_;
};

}  // namespace cellkeep::kernels
