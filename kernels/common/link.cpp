// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/link.hpp"

#include "protocol/frame.hpp"
#include "protocol/limits.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

namespace cellkeep::kernels {

namespace {

/// Fills [begin, begin + size) and returns how much was read before the peer closed.
Result<std::size_t> receive(int fd, char* begin, std::size_t size) {
    std::size_t done = 0;
    while (done < size) {
        const ssize_t count = ::recv(fd, begin + done, size - done, 0);
        if (count < 0) {
            if (errno == EINTR) {
                continue;  // The language's own signal handler noted it; see Inbox for waits.
            }
            if (errno == ECONNRESET) {
                break;  // unix(7): the peer closed and had not read all of our output.
            }
            return Error::from_errno(errno, "recv(kernel link)");
        }
        if (count == 0) {
            break;
        }
        done += static_cast<std::size_t>(count);
    }
    return done;
}

/// The same for the beginning of a frame, with which one descriptor may come (unix(7)): it is put
/// into descriptor, in place of an earlier one.
Result<std::size_t> receive_first(int fd, char* begin, std::size_t size, UniqueFd& descriptor) {
    while (true) {
        iovec part{begin, size};
        alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        const ssize_t count = ::recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0 && errno != ECONNRESET) {
            return Error::from_errno(errno, "recvmsg(kernel link)");
        }
        const cmsghdr* header = CMSG_FIRSTHDR(&message);
        if (count > 0 && header != nullptr && header->cmsg_type == SCM_RIGHTS &&
            header->cmsg_len == CMSG_LEN(sizeof(int))) {
            int received = -1;
            std::memcpy(&received, CMSG_DATA(header), sizeof(received));
            descriptor = UniqueFd(received);
        }
        if (count <= 0) {
            return std::size_t{0};
        }
        const auto done = static_cast<std::size_t>(count);
        BOOST_OUTCOME_TRY(const std::size_t rest, receive(fd, begin + done, size - done));
        return done + rest;
    }
}

std::size_t decode_prefix(const std::array<char, protocol::kLinkPrefixBytes>& bytes) {
    std::size_t value = 0;
    for (std::size_t index = bytes.size(); index > 0; --index) {
        value = (value << 8U) | static_cast<unsigned char>(bytes[index - 1]);
    }
    return value;
}

}  // namespace

Result<std::optional<protocol::Message>> Link::read() {
    std::array<char, protocol::kLinkPrefixBytes> prefix{};
    BOOST_OUTCOME_TRY(
        const std::size_t head, receive_first(fd(), prefix.data(), prefix.size(), received_));
    if (head == 0) {
        return std::optional<protocol::Message>{};
    }
    if (head < prefix.size()) {
        return Error(ErrorCode::kProtocol, "kernel link: closed inside a frame's length");
    }
    const std::size_t size = decode_prefix(prefix);
    if (size == 0 || size > limits::kFrameBytesMax) {
        return Error(
            ErrorCode::kProtocol,
            "kernel link: a frame of " + std::to_string(size) + " bytes is not allowed");
    }
    std::string frame(size, '\0');
    BOOST_OUTCOME_TRY(const std::size_t body, receive(fd(), frame.data(), frame.size()));
    if (body < size) {
        return Error(
            ErrorCode::kProtocol,
            "kernel link: closed inside a frame (" + std::to_string(body) + " of " +
                std::to_string(size) + " bytes)");
    }
    BOOST_OUTCOME_TRY(
        protocol::Message message,
        with_context(protocol::Message::from_frame(std::move(frame)), "kernel link"));
    return std::optional<protocol::Message>(std::move(message));
}

Status Link::send(std::string_view frame, More more) {
    if (lost_) {
        return Error(ErrorCode::kUnavailable, "kernel link: the peer is gone");
    }
    const std::string prefix = protocol::encode_link_prefix(frame.size());
    const std::lock_guard lock(send_mutex_);
    if (more == More::kYes && held_.size() + prefix.size() + frame.size() <= kLinkHeldBytesMax) {
        held_.append(prefix).append(frame);
        return ok();
    }
    return write(prefix, frame);
}

Status Link::flush() {
    const std::lock_guard lock(send_mutex_);
    return held_.empty() || lost_ ? ok() : write({}, {});
}

/// What is held goes first. Called with the lock.
Status Link::write(std::string_view prefix, std::string_view frame) {
    std::array<iovec, 3> pieces{};
    std::size_t count = 0;
    for (const std::string_view piece : {std::string_view(held_), prefix, frame}) {
        if (!piece.empty()) {
            // sendmsg(2) only reads what iov_base points to; its type is historical.
            pieces[count++] = {const_cast<char*>(piece.data()), piece.size()};
        }
    }
    msghdr header{};
    header.msg_iov = pieces.data();
    header.msg_iovlen = count;
    while (header.msg_iovlen > 0) {
        const ssize_t sent = ::sendmsg(fd(), &header, MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno == EINTR) {
                continue;  // A frame is never left half written.
            }
            lost_ = true;
            return Error::from_errno(errno, "sendmsg(kernel link)");
        }
        auto left = static_cast<std::size_t>(sent);
        while (header.msg_iovlen > 0 && left >= header.msg_iov->iov_len) {
            left -= header.msg_iov->iov_len;
            ++header.msg_iov;
            --header.msg_iovlen;
        }
        if (header.msg_iovlen > 0) {
            header.msg_iov->iov_base = static_cast<char*>(header.msg_iov->iov_base) + left;
            header.msg_iov->iov_len -= left;
        }
    }
    held_.clear();
    return ok();
}

void Link::abandon() {
    lost_ = true;
    socket_ = UniqueFd();
}

}  // namespace cellkeep::kernels
