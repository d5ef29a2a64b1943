// SPDX-License-Identifier: Apache-2.0
//
// The error of a cell whose process ended while it ran.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>

namespace cellkeep::cpp {

struct CellDeath {
    int status = 0;  // of wait(2)
    bool interrupted = false;
    bool stack_overflow = false;
    unsigned line = 0;             // of the cell, if its process could tell
    std::size_t threads_lost = 0;  // that earlier cells had started
};

/// The `done` event of the execution.
nlohmann::json death_event(std::uint64_t id, const CellDeath& death);

/// " 2 threads that earlier cells had started have ended.", or "".
std::string threads_lost_text(std::size_t threads);

}  // namespace cellkeep::cpp
