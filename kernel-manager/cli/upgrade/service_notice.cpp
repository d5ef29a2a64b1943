// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/upgrade/service_notice.hpp"

#include "protocol/support/unique_fd.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace cellkeep::cli {

std::string ready_notice(std::string_view status) {
    return "READY=1\nSTATUS=" + std::string(status) + "\n";
}

std::string reloading_notice(std::chrono::steady_clock::time_point now) {
    const auto since_boot =
        std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch());
    return "RELOADING=1\nMONOTONIC_USEC=" + std::to_string(since_boot.count()) + "\n";
}

std::string stopping_notice() {
    return "STOPPING=1\n";
}

Status notify_manager(const std::string& notice) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): no thread changes the environment.
    const char* path = std::getenv("NOTIFY_SOCKET");
    if (path == nullptr) {
        return ok();
    }
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::size_t length = std::strlen(path);
    if ((path[0] != '/' && path[0] != '@') || length >= sizeof address.sun_path) {
        return Error(ErrorCode::kUnavailable, "NOTIFY_SOCKET is no path of a socket");
    }
    std::memcpy(address.sun_path, path, length);
    if (path[0] == '@') {
        address.sun_path[0] = '\0';  // an abstract one (unix(7))
    }
    const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!socket) {
        return Error::from_errno(errno, "socket");
    }
    const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
    const ssize_t sent = ::sendto(
        socket.get(),
        notice.data(),
        notice.size(),
        MSG_NOSIGNAL | MSG_DONTWAIT,
        reinterpret_cast<const sockaddr*>(&address),
        bytes);
    if (sent < 0) {
        return Error(
            ErrorCode::kUnavailable,
            "NOTIFY_SOCKET: " + Error::from_errno(errno, "sendto").message());
    }
    return ok();
}

}  // namespace cellkeep::cli
