// SPDX-License-Identifier: Apache-2.0
//
// What a process that has left for a branch (sandbox/inside/copy/leaving.hpp) still has of the
// files of its former sandbox, and gives up: open files, directories, its working directory and
// mappings.
#pragma once

#include <string>

namespace cellkeep::kernels {

/// The working directory; /workspace if it has none.
std::string current_directory();

/// Opens what is open anew by its path, where the branch's files are, with the same flags and
/// position. What is not there is the null device from now on, and so are pipes to others. Mappings
/// that others share keep their bytes and are the process's own. Then goes to the directory, or to
/// /workspace.
void take_own_files(const std::string& directory);

}  // namespace cellkeep::kernels
