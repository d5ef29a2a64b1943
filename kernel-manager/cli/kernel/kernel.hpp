// SPDX-License-Identifier: Apache-2.0
//
// `cellkeep kernel`: one sandboxed kernel behind a connection file that a Jupyter program wrote, as
// any kernel that Jupyter starts. No server, no state directory; nothing is left when it ends.
#pragma once

#include "kernel-manager/cli/kernel/notebook_options.hpp"
#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace cellkeep::cli {

struct KernelCommand {
    std::string connection_file;
    NotebookOptions notebook;
};

/// Serves until a client asks for shutdown or restart (the Jupyter program then starts a new
/// process), SIGTERM, SIGHUP or SIGQUIT comes, or the process of JPY_PARENT_PID is gone: 0. SIGINT
/// interrupts the running cell. 1, with one sentence on stderr, if the kernel cannot start or is
/// dead for good.
int kernel(const KernelCommand& command);

/// Starts such a kernel, asks it for its kernel_info (messaging specification 5.5) and ends it.
Result<nlohmann::json> ask_kernel_info(const NotebookOptions& options);

}  // namespace cellkeep::cli
