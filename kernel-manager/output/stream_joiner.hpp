// SPDX-License-Identifier: Apache-2.0
//
// Joins stream messages that follow each other into one: those of one stream, one sender and one
// parent. The texts stay the bytes that came; the joined message has the header of the first one.
// Messages of another form than our kernels and the server write (other members, metadata, buffers)
// are never held. Knows no clock. Not thread-safe.
#pragma once

#include "protocol/message.hpp"

#include <cstddef>
#include <optional>
#include <string>

namespace cellkeep::session {

class StreamJoiner {
 public:
    /// Returns whether the message can be held: it is stream text of the plain form, shorter than
    /// limits::kStreamMessageBytesMax.
    static bool is_joinable(const protocol::Message& message);

    /// Returns whether hold() may follow without take(): nothing is held, or the message continues
    /// what is held and both together fit limits::kStreamMessageBytesMax. Precondition: it is
    /// joinable.
    bool accepts(const protocol::Message& message) const;
    /// Precondition: accepts(message).
    void hold(protocol::Message message);
    /// What is held, as one message; nullopt if nothing is. Nothing is held afterwards.
    std::optional<protocol::Message> take();

    bool empty() const { return !first_.has_value(); }
    /// limits::kStreamMessageBytesMax of text are held.
    bool full() const;

 private:
    std::size_t held_bytes() const;

    std::optional<protocol::Message> first_;
    std::string inside_;  // of all texts, between the quotes; empty while there is only one message
};

}  // namespace cellkeep::session
