// SPDX-License-Identifier: Apache-2.0
//
// Messages of the Connect protocol's streams (connectrpc.com/docs/protocol, "Streaming RPCs"): five
// bytes, which are flags and a length, and then JSON. Bounded. Not thread-safe.
#pragma once

#include "kernel-manager/e2b/limits.hpp"
#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::e2b {

/// A message of an answer.
std::string frame_message(const nlohmann::json& message);
/// The last message: how it ended. `code` is Connect's; empty: well.
std::string frame_end(std::string_view code = {}, std::string_view message = {});

/// A request's messages, cut out of bytes as they come.
class ConnectReader {
 public:
    explicit ConnectReader(std::size_t message_bytes_max = kMessageBytesMax)
        : message_bytes_max_(message_bytes_max) {}

    /// kProtocol: flags that it does not know, a message after the end. kLimitExceeded: an envelope
    /// that announces more than it may have. Nothing can be read after an error.
    Status append(std::string_view bytes);
    /// The next message that is whole; nullopt: there is none yet. kInvalidArgument: it is no JSON
    /// object.
    Result<std::optional<nlohmann::json>> next();
    /// Nothing of a message that is not whole is left.
    bool is_clean() const { return rest().empty(); }
    /// The length of the message that is under way, with its envelope; 0: there is none.
    std::size_t awaited() const;

 private:
    Status check_head() const;
    std::string_view rest() const { return std::string_view(buffer_).substr(taken_); }

    std::size_t message_bytes_max_;
    std::string buffer_;
    std::size_t taken_ = 0;  // of the buffer: messages that were given out
    bool ended_ = false;
};

/// The one message of a stream that has no more. As above; kProtocol if it has none, or more, or is
/// cut off.
Result<nlohmann::json> read_only_message(std::string_view body);

}  // namespace cellkeep::e2b
