// SPDX-License-Identifier: Apache-2.0
//
// Runs a notebook's cells, or one program text, in a RunTarget and tells people how it goes. Knows
// nothing of files: run.cpp reads and writes them.
#pragma once

#include "kernel-manager/cli/kernel/notebook.hpp"
#include "kernel-manager/cli/run/run_target.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace cellkeep::cli {

enum class RunOutcome { kDone, kFailed, kInterrupted };

/// A picture that a cell drew.
struct Figure {
    std::size_t cell = 0;    // 1-based, among the code cells
    std::size_t number = 0;  // 1-based, within its cell
    std::string png;
};

struct RunReport {
    RunOutcome outcome = RunOutcome::kDone;
    std::vector<Figure> figures;
};

/// Cells in order; stops at the first that fails unless it may raise. The notebook then holds the
/// new outputs, also of the failed cell. `interrupted` is asked between cells.
boost::asio::awaitable<Result<RunReport>> run_cells(
    RunTarget& target, Notebook& notebook, const std::function<bool()>& interrupted);

/// What the program writes to stdout and stderr goes to ours, in order; so do its results and
/// displays, as text, pictures and other media by name and size. Its traceback goes to stderr.
boost::asio::awaitable<Result<RunReport>> run_program(RunTarget& target, std::string code);

/// At most lines_max lines of at most 100 characters, indented by four spaces, and how many more
/// there are.
std::string excerpt(std::string_view text, std::size_t lines_max);

}  // namespace cellkeep::cli
