// SPDX-License-Identifier: Apache-2.0
//
// What a run says, as the lines of E2B's code interpreter (template/server/api/models). Pure.
#pragma once

#include "kernel-manager/execution/event_journal.hpp"
#include "kernel-manager/execution/execution.hpp"
#include "protocol/text_pieces.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::e2b {

/// One event as a line; nullopt: the clients know nothing of the kind. time: nanoseconds since
/// 1970.
std::optional<protocol::TextPieces> event_line(
    const session::ExecutionEvent& event, std::int64_t time);
/// That a run was cut off from the outside, or its interpreter died; nullopt: the run itself has
/// said how it ended.
std::optional<std::string> ending_line(const session::ExecutionResult& result);
std::string missed_line(std::uint64_t missed, std::int64_t time);
std::string count_line(std::int64_t execution_count);
std::string keepalive_line();
std::string end_line();

}  // namespace cellkeep::e2b
