// SPDX-License-Identifier: Apache-2.0
//
// What Jupyter programs add to the command line of a kernel because they take it for ipykernel:
// nbclient adds --HistoryManager.hist_file=:memory: to every kernel called python3. Pure.
#pragma once

#include <string_view>

namespace cellkeep::cli {

/// Whether `cellkeep kernel` ignores an option that is none of its own: a trait
/// ("--Class.trait=value", traitlets' configuration) or a flag of ipykernel's command line
/// (`ipython kernel --help-all`). Everything else is refused, because a misspelt limit must not be
/// one that is silently not in force.
bool is_launcher_argument(std::string_view argument);

}  // namespace cellkeep::cli
