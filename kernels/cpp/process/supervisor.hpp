// SPDX-License-Identifier: Apache-2.0
//
// The driver's first process. It has the kernel's descriptors and no state of cells. When the
// process that runs a cell ends, it resumes the copy from before the cell and reports what
// happened.
#pragma once

#include "protocol/support/unique_fd.hpp"

#include <sys/types.h>

namespace cellkeep::cpp {

struct SupervisorParts {
    UniqueFd requests;  // from the kernel
    UniqueFd events;    // to it
    UniqueFd channel;   // to and from the interpreter processes (channel.hpp)
    UniqueFd wake;      // to the copy that is to go on (snapshot.hpp)
    UniqueFd signals;   // a signalfd of SIGINT and SIGCHLD
    pid_t interpreter = -1;
};

/// Serves until the kernel closes its end or the state is lost. Returns the exit code. Ends by the
/// interpreter's signal if a signal took the state.
int supervise(SupervisorParts parts);

}  // namespace cellkeep::cpp
