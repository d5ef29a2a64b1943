// SPDX-License-Identifier: Apache-2.0
//
// An event of a process's WebSocket, as a command of ours needs it. Pure.
#pragma once

#include "protocol/support/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::cli {

/// A command that was ended by a signal, as shells report it.
inline constexpr int kSignalExitBase = 128;

struct ProcessEvent {
    std::string out;  // bytes for stdout
    std::string err;  // and for stderr
    /// The process has ended: the exit code of the command that shows it.
    std::optional<int> exit_code;
    /// The bytes of output up to its end. 0: it is not about output.
    std::uint64_t place = 0;
};

/// kProtocol if the text is no event. What this does not know is an empty event.
Result<ProcessEvent> read_process_event(std::string_view text);

}  // namespace cellkeep::cli
