// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/zmq/zmq_socket.hpp"

#include "protocol/limits.hpp"

#include <zmq.hpp>

#include <utility>

namespace cellkeep::jupyter {
namespace {

/// libzmq's own ceiling is 65,535 (ZMQ_SOCKET_LIMIT); its default of 1,023 is 204 sessions.
constexpr int kSocketsMax = 32'768;

Error zmq_error(const zmq::error_t& error, const std::string& operation) {
    if (error.num() < ZMQ_HAUSNUMERO) {  // the system's own number
        return Error::from_errno(error.num(), operation);
    }
    return {ErrorCode::kSystem, operation + ": " + error.what()};
}

/// Called by libzmq when it no longer needs a frame's bytes.
void release_keep_alive(void* /*data*/, void* hint) {
    const std::unique_ptr<std::shared_ptr<const void>> keep_alive(
        static_cast<std::shared_ptr<const void>*>(hint));
}

zmq::message_t make_frame(std::string_view bytes, const std::shared_ptr<const void>& keep_alive) {
    if (keep_alive == nullptr || bytes.size() < ZmqSocket::kZeroCopyBytesMin) {
        return {bytes.data(), bytes.size()};
    }
    auto hint = std::make_unique<std::shared_ptr<const void>>(keep_alive);
    // libzmq's interface is not const, but a frame that is only sent is never written to.
    zmq::message_t frame(
        const_cast<char*>(bytes.data()), bytes.size(), release_keep_alive, hint.get());
    // The frame owns it from here on.
    (void)hint.release();
    return frame;
}

}  // namespace

struct ZmqContext::Handle {
    zmq::context_t context;
};

ZmqContext::ZmqContext(std::unique_ptr<Handle> handle) : handle_(std::move(handle)) {}
ZmqContext::ZmqContext(ZmqContext&& other) noexcept = default;
ZmqContext& ZmqContext::operator=(ZmqContext&& other) noexcept = default;
ZmqContext::~ZmqContext() = default;

Result<ZmqContext> ZmqContext::create() {
    try {
        auto handle = std::make_unique<Handle>();
        handle->context.set(zmq::ctxopt::max_sockets, kSocketsMax);
        return ZmqContext(std::move(handle));
    } catch (const zmq::error_t& error) {
        return zmq_error(error, "zmq_ctx_new");
    }
}

struct ZmqMultipart::Parts {
    std::vector<zmq::message_t> messages;
};

ZmqMultipart::ZmqMultipart() : parts_(std::make_unique<Parts>()) {}
ZmqMultipart::ZmqMultipart(ZmqMultipart&& other) noexcept = default;
ZmqMultipart& ZmqMultipart::operator=(ZmqMultipart&& other) noexcept = default;
ZmqMultipart::~ZmqMultipart() = default;

struct ZmqSocket::Handle {
    zmq::socket_t socket;

    /// One frame; false if nothing is there.
    bool receive_frame(zmq::message_t& frame) {
        while (true) {
            try {
                return socket.recv(frame, zmq::recv_flags::dontwait).has_value();
            } catch (const zmq::error_t& error) {
                if (error.num() != EINTR) {
                    throw;
                }
            }
        }
    }

    bool send_frame(zmq::message_t& frame, bool more) {
        const auto flags =
            zmq::send_flags::dontwait | (more ? zmq::send_flags::sndmore : zmq::send_flags::none);
        while (true) {
            try {
                return socket.send(frame, flags).has_value();
            } catch (const zmq::error_t& error) {
                if (error.num() != EINTR) {
                    throw;
                }
            }
        }
    }
};

ZmqSocket::ZmqSocket(std::unique_ptr<Handle> handle) : handle_(std::move(handle)) {}
ZmqSocket::ZmqSocket(ZmqSocket&& other) noexcept = default;
ZmqSocket& ZmqSocket::operator=(ZmqSocket&& other) noexcept = default;
ZmqSocket::~ZmqSocket() = default;

Result<ZmqSocket> ZmqSocket::create(const ZmqContext& context, const ZmqSocketOptions& options) {
    const bool xpub = options.type == ZmqSocketType::kXpub;
    try {
        auto handle = std::make_unique<Handle>();
        handle->socket = zmq::socket_t(
            context.handle_->context, xpub ? zmq::socket_type::xpub : zmq::socket_type::router);
        zmq::socket_t& socket = handle->socket;
        socket.set(zmq::sockopt::linger, static_cast<int>(options.linger.count()));
        socket.set(zmq::sockopt::sndhwm, options.high_water_mark);
        socket.set(zmq::sockopt::rcvhwm, options.receive_high_water_mark);
        socket.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(options.frame_bytes_max));
        if (xpub) {
            socket.set(zmq::sockopt::xpub_verbose, true);
            socket.set(zmq::sockopt::xpub_nodrop, true);
        } else {
            socket.set(zmq::sockopt::router_handover, true);
            socket.set(zmq::sockopt::router_mandatory, true);
        }
        return ZmqSocket(std::move(handle));
    } catch (const zmq::error_t& error) {
        return zmq_error(error, "zmq_socket");
    }
}

Status ZmqSocket::bind(const std::string& endpoint) {
    try {
        handle_->socket.bind(endpoint);
        return ok();
    } catch (const zmq::error_t& error) {
        return zmq_error(error, "zmq_bind(" + endpoint + ")");
    }
}

Result<std::string> ZmqSocket::last_endpoint() const {
    try {
        return handle_->socket.get(zmq::sockopt::last_endpoint);
    } catch (const zmq::error_t& error) {
        return zmq_error(error, "zmq_getsockopt(ZMQ_LAST_ENDPOINT)");
    }
}

Result<int> ZmqSocket::fd() const {
    try {
        return handle_->socket.get(zmq::sockopt::fd);
    } catch (const zmq::error_t& error) {
        return zmq_error(error, "zmq_getsockopt(ZMQ_FD)");
    }
}

Result<bool> ZmqSocket::readable() const {
    while (true) {
        try {
            return (handle_->socket.get(zmq::sockopt::events) & ZMQ_POLLIN) != 0;
        } catch (const zmq::error_t& error) {
            if (error.num() != EINTR) {
                return zmq_error(error, "zmq_getsockopt(ZMQ_EVENTS)");
            }
        }
    }
}

Result<std::optional<ZmqMultipart>> ZmqSocket::receive() {
    try {
        ZmqMultipart multipart;
        std::vector<zmq::message_t>& messages = multipart.parts_->messages;
        std::size_t bytes = 0;
        bool within_limits = true;
        bool more = true;
        while (more) {
            zmq::message_t frame;
            // Only the first frame can be missing: ZeroMQ delivers whole messages (zmq_recv(3)).
            if (!handle_->receive_frame(frame)) {
                return std::optional<ZmqMultipart>();
            }
            more = frame.more();
            bytes += frame.size();
            within_limits = within_limits && bytes <= limits::kFrameBytesMax &&
                            messages.size() < limits::kZmqFramesMax;
            if (within_limits) {
                messages.push_back(std::move(frame));
            } else {
                messages.clear();
            }
        }
        if (!within_limits) {
            return Error(ErrorCode::kLimitExceeded, "a multipart message is too large");
        }
        multipart.frames_.reserve(messages.size());
        for (const zmq::message_t& message : messages) {
            multipart.frames_.push_back(message.to_string_view());
        }
        return std::optional<ZmqMultipart>(std::move(multipart));
    } catch (const zmq::error_t& error) {
        return zmq_error(error, "zmq_msg_recv");
    }
}

Result<SendOutcome> ZmqSocket::send(
    std::span<const std::string_view> frames, const std::shared_ptr<const void>& keep_alive) {
    try {
        for (std::size_t i = 0; i < frames.size(); ++i) {
            zmq::message_t frame = make_frame(frames[i], keep_alive);
            if (handle_->send_frame(frame, i + 1 < frames.size())) {
                continue;
            }
            if (i == 0) {
                return SendOutcome::kFull;
            }
            // ZeroMQ decides about a whole message at its first frame (zmq_msg_send(3)).
            return Error(ErrorCode::kSystem, "zmq_msg_send: a message was cut in the middle");
        }
        return SendOutcome::kSent;
    } catch (const zmq::error_t& error) {
        if (error.num() == EHOSTUNREACH) {
            return SendOutcome::kPeerGone;
        }
        return zmq_error(error, "zmq_msg_send");
    }
}

Status ZmqSocket::set_wait_for_subscribers(bool wait) {
    try {
        handle_->socket.set(zmq::sockopt::xpub_nodrop, wait);
        return ok();
    } catch (const zmq::error_t& error) {
        return zmq_error(error, "zmq_setsockopt(ZMQ_XPUB_NODROP)");
    }
}

}  // namespace cellkeep::jupyter
