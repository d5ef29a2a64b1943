// SPDX-License-Identifier: Apache-2.0
//
// Pid 1's side of its two sockets. It runs in a fork of the launcher: nothing here allocates or
// throws.
#pragma once

#include "sandbox/shared/branch_namespaces.hpp"
#include "sandbox/shared/messages.hpp"

#include <array>
#include <cstddef>
#include <span>

namespace cellkeep::sandbox {

struct ReceivedRequest {
    std::array<int, kRequestFdsMax> fds{-1, -1, -1, -1};
    std::size_t fd_count = 0;
    alignas(RequestHeader) std::array<char, kRequestBytesMax> bytes{};
};

/// How many descriptors go with one message, at most.
inline constexpr std::size_t kSentFdsMax = kBranchNamespaceCount;

/// One message, with those descriptors; flags as for sendmsg(2). 0 or an errno.
int send_with_descriptors(
    int socket, const void* bytes, std::size_t size, std::span<const int> fds, int flags);

/// The same with one, or none if fd is -1.
int send_message(int socket, const void* bytes, std::size_t size, int fd, int flags);

/// One message of setup to the server, with at most one descriptor (-1: none). 0 or an errno.
int send_setup_message(int control_fd, const SetupMessage& message, int fd);

/// The size of the request, 0 if the server is gone or broke the protocol (which is the same to
/// us).
std::size_t receive_request(int socket, ReceivedRequest& request);

}  // namespace cellkeep::sandbox
