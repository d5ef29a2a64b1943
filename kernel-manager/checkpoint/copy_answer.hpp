// SPDX-License-Identifier: Apache-2.0
//
// An interpreter's answer to the request for a copy of itself (protocol::kCheckpointRequest), read
// as what a hostile guest may have written. A pure function.
#pragma once

#include "kernel-manager/checkpoint/checkpoint.hpp"
#include "protocol/support/result.hpp"

#include <sys/types.h>

#include <cstdint>
#include <string_view>
#include <variant>

namespace cellkeep::checkpoint {

/// There is a copy, the guest says.
struct Copied {
    pid_t forked = 0;  // its number inside
    std::int32_t execution_count = 0;
    std::uint32_t carried_threads = 0;
    Lost lost;
    bool goes_on = false;   // something runs in the interpreter between requests
    bool prepares = false;  // the copy knows sandbox::WakeKind::kPrepare
};

using CopyAnswer = std::variant<Copied, NotForkable>;

/// content: JSON text. kProtocol if it is neither answer, a number is out of its range, or it is
/// longer than limits::kCopyAnswerBytesMax.
Result<CopyAnswer> read_copy_answer(std::string_view content);

}  // namespace cellkeep::checkpoint
