// SPDX-License-Identifier: Apache-2.0
//
// The end of a process whose cell crashes: writes out what the cell printed, reports a stack
// overflow as such and not as a wild pointer, and names an uncaught exception.
#pragma once

#include "kernels/cpp/process/channel.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>

namespace cellkeep::cpp {

/// Installs the handlers of SIGINT and of the signals that are crashes, and the terminate handler.
/// `channel` lives as long as the process.
void install_fault_handlers(Channel& channel);

/// While it lives, SIGINT ends the process, and an exception that ends the process is reported as
/// this execution's error.
class CellRuns {
 public:
    explicit CellRuns(std::uint64_t id);
    ~CellRuns();
    CellRuns(const CellRuns&) = delete;
    CellRuns& operator=(const CellRuns&) = delete;
};

/// The `done` event for the exception that is being handled; only in a catch clause or a terminate
/// handler.
nlohmann::json exception_event(std::uint64_t id);

}  // namespace cellkeep::cpp
