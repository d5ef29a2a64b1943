// SPDX-License-Identifier: Apache-2.0
//
// Where Jupyter looks for kernelspecs, as jupyter_core.paths has it on Linux. Pure: the environment
// is handed in.
#pragma once

#include "protocol/support/result.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::cli {

/// One environment variable; nothing if it is not set or empty.
using Environment = std::function<std::optional<std::string>(const char* name)>;
/// That of this process.
Environment process_environment();

/// The user's own: $JUPYTER_DATA_DIR/kernels, $XDG_DATA_HOME/jupyter/kernels or
/// ~/.local/share/jupyter/kernels. kInvalidArgument if none of the variables is set.
Result<std::string> user_kernels_directory(const Environment& environment);
/// DIR/share/jupyter/kernels.
std::string prefix_kernels_directory(const std::string& prefix);

/// Every directory in Jupyter's order: $JUPYTER_PATH, the user's own, the active virtual or Conda
/// environment's, the system's.
std::vector<std::string> kernels_directories(const Environment& environment);

}  // namespace cellkeep::cli
