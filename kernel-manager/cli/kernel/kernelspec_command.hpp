// SPDX-License-Identifier: Apache-2.0
//
// `cellkeep kernelspec install`, `list` and `remove`: makes Cellkeep's kernel known to plain
// Jupyter. Each returns the exit code.
#pragma once

#include "kernel-manager/cli/kernel/notebook_options.hpp"

#include <optional>
#include <string>

namespace cellkeep::cli {

/// Of a language's kernelspec, if no other is asked for: "cellkeep-python".
std::string default_kernelspec_name(const std::string& language);

/// Where: nothing means the user's own directory.
struct KernelspecPlace {
    std::optional<std::string> name;  // nothing: the language's default, Python's to remove
    std::optional<std::string> prefix;
    bool force = false;
};

struct KernelspecInstall {
    KernelspecPlace place;
    std::optional<std::string> display_name;
    bool check = true;  // start such a kernel once, and ask what it can do
    bool all = false;   // every language, each under its own name
    NotebookOptions notebook;
};

int kernelspec_install(const KernelspecInstall& command);
int kernelspec_list();
int kernelspec_remove(const KernelspecPlace& place);

}  // namespace cellkeep::cli
