// SPDX-License-Identifier: Apache-2.0
//
// What asyncio's C half keeps of the event loops that run in threads, in the CPython that the
// kernel embeds. It is in no public interface, and it is why threads go on in copies of that
// interpreter only.
#pragma once

#include "kernels/python/python_object.hpp"

#include <sys/types.h>

#include <optional>

namespace cellkeep::kernels::python {

/// The event loops that run in threads now, as a list. process: they are told that they run in it.
/// Null with an exception. With the lock.
Object running_loops(std::optional<pid_t> process);

}  // namespace cellkeep::kernels::python
