// SPDX-License-Identifier: Apache-2.0
//
// Variables that are lists of folders, by which programs find what a named environment has: PATH,
// NODE_PATH and LD_LIBRARY_PATH. All languages of its sessions have them. Pure functions.
#pragma once

#include "kernel-manager/kernel/kernel_spec.hpp"

#include <map>
#include <string>

namespace cellkeep::session {

/// Gives another language of the session those that main has. Without a named environment: none.
void share_variables(const KernelSpec& main, KernelSpec& spec);

/// The session's own variables, with the folders of main's environment behind those that the
/// session names itself: without them its packages would vanish. A folder that is in both stays
/// where the session has it, so a second call changes nothing. Without a named environment: as
/// they are.
std::map<std::string, std::string> join_variables(
    const KernelSpec& main, std::map<std::string, std::string> own);

}  // namespace cellkeep::session
