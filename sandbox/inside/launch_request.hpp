// SPDX-License-Identifier: Apache-2.0
//
// What a process does that forks a launcher for each of the server's requests: a zygote, or a
// launcher of branches. Rules of child_setup.hpp apply.
#pragma once

#include "sandbox/inside/child_setup.hpp"
#include "sandbox/shared/messages.hpp"

#include <array>
#include <cstddef>

namespace cellkeep::sandbox {

/// In the order of LaunchRequest; behind them, of a launcher of branches, the host's /proc.
struct LaunchDescriptors {
    std::array<int, kLaunchFdsMax + 1> fds{};
    std::size_t count = 0;
};

/// Waits for the next request. False: the server has closed the socket, or said what makes no
/// sense.
bool receive_launch(int control_fd, LaunchDescriptors& received);

/// In the fork: carries out the request. It has its descriptors where launch_sandbox() looks for
/// them, and no other.
[[noreturn]] void become_launcher(LaunchDescriptors& received, WarmEntry entry);

/// In the process that took the request, when it has forked: closes the descriptors. error: 0, or
/// the errno of a fork that failed, which the server is told.
void end_request(const LaunchDescriptors& received, int error);

}  // namespace cellkeep::sandbox
