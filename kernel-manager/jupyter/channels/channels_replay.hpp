// SPDX-License-Identifier: Apache-2.0
//
// What of the past a client is shown that connects for the first time: nothing of what is over, all
// of what still runs. Pure functions over a session's output journal.
#pragma once

#include "kernel-manager/output/journal.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace cellkeep::jupyter {

/// The kept messages of the requests that have begun and have not been idle yet, in order. Without
/// comm messages: a page that has just been loaded knows no comm targets yet, and
/// @jupyterlab/services answers a comm_open of an unknown target by closing the comm in the kernel.
std::vector<session::OutputEntry> select_running(const session::OutputJournal& journal);

/// The place of a message in the journal, if it is still kept.
std::optional<std::uint64_t> find_sequence(
    const session::OutputJournal& journal, std::string_view msg_id);

}  // namespace cellkeep::jupyter
