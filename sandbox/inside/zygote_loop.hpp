// SPDX-License-Identifier: Apache-2.0
//
// A zygote's half of sandbox/server/zygote.hpp: takes the server's requests and forks a launcher
// for each, whose pid 1 has this process's memory. The forks are siblings (CLONE_PARENT), so
// nothing of the sessions depends on this process. One thread; the program touches nothing of its
// own any more.
#pragma once

#include "sandbox/inside/child_setup.hpp"

namespace cellkeep::sandbox {

/// Says that it is ready and serves until the server closes the socket; leaves by _exit(2), with 0
/// then. entry is where a warm worker goes on, in a fork of a fork of this process.
[[noreturn]] void serve_zygote(int control_fd, WarmEntry entry) noexcept;

}  // namespace cellkeep::sandbox
