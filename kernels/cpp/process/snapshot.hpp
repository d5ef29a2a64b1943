// SPDX-License-Identifier: Apache-2.0
//
// A forked copy of this process that waits. It goes on if a cell ruins the original.
#pragma once

#include "kernels/cpp/process/channel.hpp"

#include <sys/types.h>

#include <string>

namespace cellkeep::cpp {

/// Which of the two this is.
struct Snapshot {
    enum class Side {
        kOriginal,  // go on with the cell
        kTakenUp,   // the cell is over, and nothing of it has happened here
        kNone,      // there was no room for another process: the cell runs without one
    };
    Side side = Side::kNone;
    /// With kTakenUp: what the supervisor passes on (JSON, or "").
    std::string why;
};

/// Forks; the copy is no child of this process (a cell that waits for its children does not find
/// it), waits, and returns kTakenUp when the supervisor says so. It ends without a word when the
/// supervisor does.
Snapshot take_snapshot(Channel& channel, pid_t supervisor);

/// Threads of this process, from /proc; 1 if that cannot be read.
std::size_t thread_count();

}  // namespace cellkeep::cpp
