// SPDX-License-Identifier: Apache-2.0
#include "protocol/support/syscall.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

using cellkeep::ErrorCode;
using cellkeep::kMessageFdsMax;
using cellkeep::receive_with_fds;
using cellkeep::send_with_fds;
using cellkeep::UniqueFd;

namespace {

struct Sockets {
    UniqueFd a;
    UniqueFd b;
};

Sockets make_sockets() {
    auto pair = cellkeep::make_socket_pair(SOCK_SEQPACKET);
    REQUIRE(pair.has_value());
    return {std::move(pair.value().first), std::move(pair.value().second)};
}

std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

std::size_t open_fd_count() {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        (void)entry;
        ++count;
    }
    return count;
}

// send_with_fds refuses to send more than fits; a hostile peer does not.
void send_raw(int socket, std::size_t fd_count, int fd) {
    std::vector<int> fds(fd_count, fd);
    std::vector<std::byte> control(CMSG_SPACE(sizeof(int) * fd_count));
    char byte = 'x';
    iovec part{&byte, 1};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
    std::memcpy(CMSG_DATA(header), fds.data(), sizeof(int) * fd_count);
    REQUIRE(::sendmsg(socket, &message, MSG_NOSIGNAL) == 1);
}

}  // namespace

TEST_CASE("a message carries its descriptors in order", "[support][fds]") {
    const auto sockets = make_sockets();
    auto pipe = cellkeep::make_pipe();
    REQUIRE(pipe.has_value());
    const std::array<int, 2> fds{pipe.value().write_end.get(), pipe.value().read_end.get()};
    REQUIRE(send_with_fds(sockets.a.get(), bytes_of("hello"), fds).has_value());
    std::array<std::byte, 64> buffer{};
    const auto received = receive_with_fds(sockets.b.get(), buffer);
    REQUIRE(received.has_value());
    CHECK(received.value().bytes == 5);
    CHECK(std::memcmp(buffer.data(), "hello", 5) == 0);
    REQUIRE(received.value().fds.size() == 2);
    CHECK((::fcntl(received.value().fds[0].get(), F_GETFD) & FD_CLOEXEC) != 0);
    REQUIRE(cellkeep::write_all(received.value().fds[0].get(), "z").has_value());
    std::array<std::byte, 1> byte{};
    REQUIRE(cellkeep::read_exactly(received.value().fds[1].get(), byte).has_value());
    CHECK(byte[0] == std::byte{'z'});
}

TEST_CASE("kMessageFdsMax descriptors fit in one message", "[support][fds]") {
    const auto sockets = make_sockets();
    const std::vector<int> fds(kMessageFdsMax, sockets.a.get());
    REQUIRE(send_with_fds(sockets.a.get(), bytes_of("x"), fds).has_value());
    std::array<std::byte, 1> buffer{};
    const auto received = receive_with_fds(sockets.b.get(), buffer);
    REQUIRE(received.has_value());
    CHECK(received.value().fds.size() == kMessageFdsMax);
}

TEST_CASE("a message with more descriptors is refused and none of them leaks", "[support][fds]") {
    const auto sockets = make_sockets();
    std::array<std::byte, 1> buffer{};
    const std::size_t before = open_fd_count();
    for (const std::size_t count : {kMessageFdsMax + 1, kMessageFdsMax + 2, kMessageFdsMax + 50}) {
        CAPTURE(count);
        send_raw(sockets.a.get(), count, sockets.a.get());
        const auto received = receive_with_fds(sockets.b.get(), buffer);
        REQUIRE(received.has_error());
        CHECK(received.error().code() == ErrorCode::kProtocol);
        CHECK(open_fd_count() == before);
    }
}

TEST_CASE("a datagram that does not fit is refused and leaks nothing", "[support][fds]") {
    const auto sockets = make_sockets();
    const std::array<int, 1> fds{sockets.a.get()};
    const std::size_t before = open_fd_count();
    REQUIRE(send_with_fds(sockets.a.get(), bytes_of("12345"), fds).has_value());
    std::array<std::byte, 4> buffer{};
    const auto received = receive_with_fds(sockets.b.get(), buffer);
    REQUIRE(received.has_error());
    CHECK(received.error().code() == ErrorCode::kProtocol);
    CHECK(open_fd_count() == before);
}

TEST_CASE(
    "an empty socket, a closed peer and a bad socket give different errors", "[support][fds]") {
    auto sockets = make_sockets();
    REQUIRE(cellkeep::set_nonblocking(sockets.b.get()).has_value());
    std::array<std::byte, 4> buffer{};
    const auto nothing = receive_with_fds(sockets.b.get(), buffer);
    REQUIRE(nothing.has_error());
    CHECK(nothing.error().code() == ErrorCode::kUnavailable);

    sockets.a.reset();
    const auto closed = receive_with_fds(sockets.b.get(), buffer);
    REQUIRE(closed.has_value());
    CHECK(closed.value().bytes == 0);
    CHECK(closed.value().fds.empty());

    CHECK(send_with_fds(sockets.b.get(), bytes_of("x"), {}).error().errno_value() == EPIPE);
    CHECK(receive_with_fds(-1, buffer).error().code() == ErrorCode::kSystem);
    CHECK(cellkeep::set_nonblocking(-1).has_error());
}
