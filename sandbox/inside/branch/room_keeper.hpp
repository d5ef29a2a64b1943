// SPDX-License-Identifier: Apache-2.0
//
// The process that makes room for the user namespaces of branches. A sandbox bounds how many there
// may be beneath it, so that its guests make none. The process is in the topmost namespace that has
// such a bound, and so it may write those of all beneath. Rules of child_setup.hpp apply.
#pragma once

#include <cstddef>

namespace cellkeep::sandbox {

/// User namespaces above the guests of a parent, at most: what the kernel allows
/// (user_namespaces(7)).
inline constexpr std::size_t kUserNamespacesAbove = 33;

/// Forks it, in the caller's user namespace. towards: the socket on which it takes bounds and then
/// orders (RoomOrder). It ends at the socket's end of file. An errno.
int fork_room_keeper(int& towards);

/// Of the caller's user namespace: only who is in one can open its bound (proc(5)). proc_fd: the
/// host's /proc. An errno.
int give_bound(int proc_fd, int towards);

}  // namespace cellkeep::sandbox
