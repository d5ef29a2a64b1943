// SPDX-License-Identifier: Apache-2.0
//
// The kernel's end of the kernel link: one stream socket on which each v1 frame follows its length
// as an unsigned 32-bit little-endian number (protocol/frame.hpp). Blocking. It never reads past
// the frame it was asked for, so "the descriptor is readable" and "a frame has begun" are the same
// fact. read() belongs to one thread; send() may be called from any.
#pragma once

#include "protocol/message.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

#include <atomic>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace cellkeep::kernels {

/// Whether the caller sends another message at once. A frame that says so waits for that one, so
/// that both are one system call here and one wake-up of the server. Never said before anything
/// that may take time: user code, above all.
enum class More { kNo, kYes };

/// Longer frames, and what comes when so much waits already, are sent at once.
inline constexpr std::size_t kLinkHeldBytesMax = 16UL << 10U;

class Link {
 public:
    /// socket: a connected, blocking stream socket.
    explicit Link(UniqueFd socket) : socket_(std::move(socket)) {}

    int fd() const { return socket_.get(); }

    /// Blocks until a whole message is there. Returns nullopt if the peer closed between frames.
    /// kProtocol: it closed inside a frame, or sent an invalid one. The stream is then unusable.
    Result<std::optional<protocol::Message>> read();
    /// The descriptor that came with the last frame that had one; invalid if none did, or it was
    /// taken. For the thread that calls read().
    UniqueFd take_descriptor() { return std::exchange(received_, UniqueFd()); }

    /// Writes one whole frame with its length. kUnavailable once the peer is gone: output then has
    /// no reader, and read() will say so.
    Status send(std::string_view frame, More more = More::kNo);
    /// Sends a frame that waits for another one, if none follows after all.
    Status flush();

    /// For a forked child: closes its copy of the descriptor. Every send from then on fails as if
    /// the peer were gone. Takes no lock: the parent's other threads may have held it.
    void abandon();

 private:
    Status write(std::string_view prefix, std::string_view frame);

    UniqueFd socket_;
    UniqueFd received_;
    std::mutex send_mutex_;
    std::string held_;  // whole frames with their lengths
    std::atomic<bool> lost_{false};
};

}  // namespace cellkeep::kernels
