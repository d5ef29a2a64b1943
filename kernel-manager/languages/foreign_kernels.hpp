// SPDX-License-Identifier: Apache-2.0
//
// Jupyter kernels that are installed on the host and not ours, as languages
// (kernels/foreign/README.md): their kernelspecs found, and what they need of the host derived from
// them.
#pragma once

#include "kernel-manager/languages/language_folder.hpp"
#include "sandbox/policy/policy.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::session {

struct ForeignKernel {
    std::string name;  // of its kernelspec, in lower case: the language's
    std::string display_name;
    std::string language;                       // what it says that it speaks
    std::string resources;                      // the kernelspec's directory, links followed
    std::string program;                        // argv[0], absolute
    std::vector<sandbox::ReadOnlyPath> shared;  // of the host's, at the same paths inside
    /// What it does not run without; of /usr, an image must have it.
    std::vector<std::string> system_files;
    std::vector<std::string> packages;  // Debian's, for an image
};

struct ForeignKernels {
    std::vector<ForeignKernel> found;
    std::vector<NotOffered> not_offered;
};

/// Every kernelspec in these directories (or which one of them is) whose program is there; the
/// first of a name counts. path: where programs are looked for, as in $PATH. dpkg_lists: dpkg's
/// lists of files.
ForeignKernels find_foreign_kernels(
    const std::vector<std::string>& directories,
    std::string_view path,
    const std::string& dpkg_lists = "/var/lib/dpkg/info");

}  // namespace cellkeep::session
