// SPDX-License-Identifier: Apache-2.0
//
// The checkpoints of a session on their way from one program in the server's process to another, as
// text; their descriptors pass beside, in the same order. Pure functions.
#pragma once

#include "kernel-manager/session/checkpoints/kept_checkpoints.hpp"
#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <vector>

namespace cellkeep::session {

/// Names of files, and of what could not be kept, in all checkpoints of a session together: one
/// that has more does not pass.
inline constexpr std::size_t kPassedNamesMax = 65'536;

/// Ends of a session's checkpoints.
struct CheckpointEnds {
    struct Sleeper {
        UniqueFd pidfd;
        UniqueFd socket;
    };
    std::vector<Sleeper> sleepers;  // in the order of the checkpoints
    UniqueFd blobs;                 // none: no contents are kept
};

/// The ends are taken out.
nlohmann::json write_checkpoints(PassedCheckpoints& passed, CheckpointEnds& ends);
/// kProtocol for another form, and for what no session of ours has.
Result<PassedCheckpoints> read_checkpoints(const nlohmann::json& text, CheckpointEnds ends);

}  // namespace cellkeep::session
