// SPDX-License-Identifier: Apache-2.0
//
// A wait in the kernel that a signal's handler has interrupted. x86-64. Rules of child_setup.hpp
// apply.
#pragma once

#if defined(__x86_64__)

#include <ucontext.h>

namespace cellkeep::sandbox {

/// In a handler, about what it interrupted: the call is made once more when the handler returns, if
/// it was a wait that the kernel does not repeat by itself, without a time limit or with an
/// absolute one. Otherwise nothing: the call returns EINTR, as after any signal.
void repeat_wait(ucontext_t& interrupted) noexcept;

}  // namespace cellkeep::sandbox

#endif
