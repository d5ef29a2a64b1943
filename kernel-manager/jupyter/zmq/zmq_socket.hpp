// SPDX-License-Identifier: Apache-2.0
//
// ZeroMQ contexts, sockets and multipart messages as owners with Results. zmq_socket.cpp is the
// only file of the product that includes <zmq.hpp>, and its exceptions end there. Nothing here
// blocks. Knows nothing of Jupyter. A socket belongs to one thread; a context may be shared.
#pragma once

#include "protocol/support/result.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::jupyter {

class ZmqContext {
 public:
    static Result<ZmqContext> create();
    ZmqContext(ZmqContext&& other) noexcept;
    ZmqContext& operator=(ZmqContext&& other) noexcept;
    ZmqContext(const ZmqContext&) = delete;
    ZmqContext& operator=(const ZmqContext&) = delete;
    /// Waits until every closed socket has sent what it had, at most its linger time. All sockets
    /// must be closed.
    ~ZmqContext();

 private:
    friend class ZmqSocket;
    struct Handle;
    explicit ZmqContext(std::unique_ptr<Handle> handle);
    std::unique_ptr<Handle> handle_;
};

/// One received message: its frames, alive as long as this object.
class ZmqMultipart {
 public:
    ZmqMultipart(ZmqMultipart&& other) noexcept;
    ZmqMultipart& operator=(ZmqMultipart&& other) noexcept;
    ZmqMultipart(const ZmqMultipart&) = delete;
    ZmqMultipart& operator=(const ZmqMultipart&) = delete;
    ~ZmqMultipart();

    std::span<const std::string_view> frames() const { return frames_; }

 private:
    friend class ZmqSocket;
    struct Parts;
    ZmqMultipart();
    std::unique_ptr<Parts> parts_;
    std::vector<std::string_view> frames_;
};

enum class ZmqSocketType {
    kRouter,  // takes over an identity from a connection that was lost; tells when a peer is gone
    kXpub,    // shows every subscription; reports a full subscriber instead of dropping
};

struct ZmqSocketOptions {
    ZmqSocketType type = ZmqSocketType::kRouter;
    int high_water_mark = 0;              // messages to one peer
    int receive_high_water_mark = 0;      // messages from one peer
    std::size_t frame_bytes_max = 0;      // a larger one costs its sender the connection
    std::chrono::milliseconds linger{0};  // how long close() may go on sending in the background
};

enum class SendOutcome {
    kSent,
    kFull,      // a peer is at the high-water mark; nothing was sent to anybody
    kPeerGone,  // no connection has this identity
};

class ZmqSocket {
 public:
    static Result<ZmqSocket> create(const ZmqContext& context, const ZmqSocketOptions& options);
    ZmqSocket(ZmqSocket&& other) noexcept;
    ZmqSocket& operator=(ZmqSocket&& other) noexcept;
    ZmqSocket(const ZmqSocket&) = delete;
    ZmqSocket& operator=(const ZmqSocket&) = delete;
    ~ZmqSocket();

    Status bind(const std::string& endpoint);
    /// The endpoint that bind() got, with the real port (ZMQ_LAST_ENDPOINT).
    Result<std::string> last_endpoint() const;

    /// The descriptor that becomes readable when the socket has something to say. Edge-triggered
    /// (zmq_getsockopt(3), ZMQ_FD): after every send and receive ask readable() again. Owned by
    /// ZeroMQ.
    Result<int> fd() const;
    /// Whether receive() would give a message now; also lets ZeroMQ see what its peers did.
    Result<bool> readable() const;

    /// One whole message, or nothing. kLimitExceeded for one of too many or too large frames
    /// (limits::kZmqFramesMax, limits::kFrameBytesMax): it has been thrown away and the socket
    /// works on.
    Result<std::optional<ZmqMultipart>> receive();

    /// All frames as one message, or none. Without keep_alive the bytes are copied; with it, frames
    /// of at least kZeroCopyBytesMin are sent from where they are, and keep_alive is released,
    /// perhaps on another thread, when ZeroMQ no longer needs them.
    Result<SendOutcome> send(
        std::span<const std::string_view> frames,
        const std::shared_ptr<const void>& keep_alive = nullptr);

    /// kXpub only. On: send() answers kFull while a subscriber is full. Off: such a subscriber is
    /// left out until it has read half of what waits for it (libzmq's dist_t).
    Status set_wait_for_subscribers(bool wait);

    static constexpr std::size_t kZeroCopyBytesMin = 4096;

 private:
    struct Handle;
    explicit ZmqSocket(std::unique_ptr<Handle> handle);
    std::unique_ptr<Handle> handle_;
};

}  // namespace cellkeep::jupyter
