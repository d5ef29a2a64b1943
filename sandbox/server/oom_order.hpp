// SPDX-License-Identifier: Apache-2.0
//
// Which of a session's processes the kernel's out-of-memory killer takes first (oom_score_adj,
// proc(5)): the running interpreter and what it starts, then what sleeps, then pid 1.
#pragma once

#include "protocol/support/result.hpp"

namespace cellkeep::sandbox {

enum class OomPlace { kRunning, kSleeping };

/// For a process inside, by its pidfd. kUnavailable if it has ended; kSystem if this server may not
/// change it.
Status set_oom_place(int pidfd, OomPlace place);

}  // namespace cellkeep::sandbox
