// SPDX-License-Identifier: Apache-2.0
#include "protocol/support/syscall.hpp"

#include "protocol/support/random_pool.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace cellkeep {

namespace {

template <typename Call>
auto retry_on_eintr(Call call) {
    auto rc = call();
    while (rc < 0 && errno == EINTR) {
        rc = call();
    }
    return rc;
}

}  // namespace

Result<Pipe> make_pipe(int flags) {
    std::array<int, 2> fds{};
    if (::pipe2(fds.data(), flags | O_CLOEXEC) < 0) {
        return Error::from_errno(errno, "pipe2");
    }
    return Pipe{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

Result<std::pair<UniqueFd, UniqueFd>> make_socket_pair(int type) {
    std::array<int, 2> fds{};
    if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds.data()) < 0) {
        return Error::from_errno(errno, "socketpair");
    }
    return std::pair{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

Status set_nonblocking(int fd) {
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) {
        return Error::from_errno(errno, "fcntl(O_NONBLOCK)");
    }
    return ok();
}

Result<UniqueFd> open_file(const std::string& path, int flags, mode_t mode) {
    const int fd = retry_on_eintr([&] { return ::open(path.c_str(), flags | O_CLOEXEC, mode); });
    if (fd < 0) {
        return Error::from_errno(errno, "open(" + path + ")");
    }
    return UniqueFd(fd);
}

Status read_in_pieces(
    int fd, std::uint64_t bytes_max, const std::function<Status(std::string_view)>& take) {
    std::array<char, 65536> piece{};
    std::uint64_t bytes = 0;
    while (true) {
        const ssize_t got = retry_on_eintr([&] { return ::read(fd, piece.data(), piece.size()); });
        if (got < 0) {
            return Error::from_errno(errno, "read");
        }
        if (got == 0) {
            return ok();
        }
        bytes += static_cast<std::uint64_t>(got);
        if (bytes > bytes_max) {
            return Error(
                ErrorCode::kLimitExceeded, "longer than " + std::to_string(bytes_max) + " bytes");
        }
        BOOST_OUTCOME_TRY(take({piece.data(), static_cast<std::size_t>(got)}));
    }
}

Result<std::string> read_to_end(int fd, std::size_t bytes_max) {
    std::string bytes;
    struct stat info {};
    if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
        bytes.reserve(std::min(static_cast<std::size_t>(info.st_size), bytes_max));
    }
    BOOST_OUTCOME_TRY(read_in_pieces(fd, bytes_max, [&bytes](std::string_view piece) {
        bytes += piece;
        return ok();
    }));
    return bytes;
}

Result<std::string> read_file(const std::string& path, std::size_t bytes_max) {
    BOOST_OUTCOME_TRY(const auto fd, open_file(path, O_RDONLY));
    return with_context(read_to_end(fd.get(), bytes_max), "read(" + path + ")");
}

Status write_file_atomically(const std::string& path, std::string_view bytes, mode_t mode) {
    BOOST_OUTCOME_TRY(const auto suffix, random_hex(6));
    const std::string temporary = path + "." + suffix;
    BOOST_OUTCOME_TRY(auto fd, open_file(temporary, O_WRONLY | O_CREAT | O_EXCL, mode));
    auto written = write_all(fd.get(), bytes);
    if (written.has_value() && ::rename(temporary.c_str(), path.c_str()) < 0) {
        written = Error::from_errno(errno, "rename(" + temporary + ", " + path + ")");
    }
    if (written.has_error()) {
        // Ignored: the first failure is the one to report.
        (void)::unlink(temporary.c_str());
    }
    return written;
}

Status write_control_file(const std::string& path, std::string_view value) {
    BOOST_OUTCOME_TRY(auto fd, open_file(path, O_WRONLY));
    const ssize_t wrote =
        retry_on_eintr([&] { return ::write(fd.get(), value.data(), value.size()); });
    if (wrote < 0) {
        return Error::from_errno(errno, "write(" + path + ", " + std::string(value) + ")");
    }
    if (static_cast<std::size_t>(wrote) != value.size()) {
        return Error(ErrorCode::kSystem, "write(" + path + "): short write");
    }
    return ok();
}

Status write_all(int fd, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t wrote =
            retry_on_eintr([&] { return ::write(fd, bytes.data(), bytes.size()); });
        if (wrote < 0) {
            return Error::from_errno(errno, "write");
        }
        bytes = bytes.subspan(static_cast<std::size_t>(wrote));
    }
    return ok();
}

Status write_all(int fd, std::string_view bytes) {
    return write_all(fd, std::as_bytes(std::span(bytes.data(), bytes.size())));
}

Status read_exactly(int fd, std::span<std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t got = retry_on_eintr([&] { return ::read(fd, bytes.data(), bytes.size()); });
        if (got < 0) {
            return Error::from_errno(errno, "read");
        }
        if (got == 0) {
            return Error(ErrorCode::kProtocol, "read: the peer closed in the middle of a record");
        }
        bytes = bytes.subspan(static_cast<std::size_t>(got));
    }
    return ok();
}

Status send_with_fds(int socket, std::span<const std::byte> bytes, std::span<const int> fds) {
    CELLKEEP_CHECK(fds.size() <= kMessageFdsMax);
    iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int) * kMessageFdsMax)> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!fds.empty()) {
        message.msg_control = control.data();
        message.msg_controllen = CMSG_SPACE(fds.size_bytes());
        cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(fds.size_bytes());
        std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
    }
    const ssize_t sent = retry_on_eintr([&] { return ::sendmsg(socket, &message, MSG_NOSIGNAL); });
    if (sent < 0) {
        return Error::from_errno(errno, "sendmsg");
    }
    return ok();
}

Result<ReceivedMessage> receive_with_fds(int socket, std::span<std::byte> buffer) {
    iovec part{buffer.data(), buffer.size()};
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int) * kMessageFdsMax)> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got =
        retry_on_eintr([&] { return ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC); });
    if (got < 0) {
        const int saved_errno = errno;
        if (saved_errno == EAGAIN || saved_errno == EWOULDBLOCK) {
            return Error(ErrorCode::kUnavailable, "recvmsg: nothing to read yet");
        }
        return Error::from_errno(saved_errno, "recvmsg");
    }
    ReceivedMessage received;
    received.bytes = static_cast<std::size_t>(got);
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
         header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
            received.fds.emplace_back(fd);
        }
    }
    if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
        return Error(ErrorCode::kProtocol, "recvmsg: a truncated message");
    }
    return received;
}

namespace {

std::string to_hex(std::span<const unsigned char> bytes) {
    static constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text;
    text.reserve(bytes.size() * 2);
    for (const unsigned char value : bytes) {
        text += kDigits[value >> 4U];
        text += kDigits[value & 15U];
    }
    return text;
}

}  // namespace

Result<std::string> random_hex(std::size_t size) {
    thread_local RandomPool pool;
    std::array<unsigned char, RandomPool::kBytesMax> bytes{};
    CELLKEEP_CHECK(size <= bytes.size());
    const auto wanted = std::span(bytes).first(size);
    BOOST_OUTCOME_TRY(pool.fill(wanted));
    return to_hex(wanted);
}

Result<std::string> secret_hex(std::size_t size) {
    std::array<unsigned char, RandomPool::kBytesMax> bytes{};
    CELLKEEP_CHECK(size <= bytes.size());
    const auto wanted = std::span(bytes).first(size);
    BOOST_OUTCOME_TRY(fill_random(wanted));
    std::string text = to_hex(wanted);
    ::explicit_bzero(bytes.data(), bytes.size());
    return text;
}

}  // namespace cellkeep
