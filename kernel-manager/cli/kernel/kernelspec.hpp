// SPDX-License-Identifier: Apache-2.0
//
// Kernelspecs of Cellkeep for plain Jupyter (jupyter_client "Kernel specs"; JEP 105): a directory
// with kernel.json and the logos, put in place and replaced in one step. Never touches a kernelspec
// that is not ours unless the caller asks for that.
#pragma once

#include "kernel-manager/cli/kernel/notebook_options.hpp"
#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace cellkeep::cli {

/// What Jupyter takes for a kernelspec's name (jupyter_client.kernelspec): letters, digits, '.',
/// '_', '-'. kInvalidArgument otherwise.
Status check_kernelspec_name(const std::string& name);

struct Kernelspec {
    std::string program;  // the absolute path of cellkeep
    std::string display_name;
    std::string language;  // what its code is written in
    bool debugger = false;
    NotebookOptions notebook;
};

nlohmann::json to_json(const Kernelspec& spec);

enum class Overwrite { kOwn, kAny };

/// Writes directory/name, with the logos in logo_folder, or Cellkeep's own without one. kConflict
/// if something is there that is not ours and overwrite is kOwn.
Status write_kernelspec(
    const std::string& directory,
    const std::string& name,
    const nlohmann::json& spec,
    Overwrite overwrite,
    const std::string& logo_folder = {});

/// Removes directory/name. kNotFound if there is none, kConflict as above.
Status remove_kernelspec(
    const std::string& directory, const std::string& name, Overwrite overwrite);

struct InstalledKernelspec {
    std::string name;
    std::string directory;
    std::string display_name;
    std::string program;
    bool hidden = false;  // Jupyter finds another of this name before
};

/// Ours in these directories, in their order; by name in each.
std::vector<InstalledKernelspec> list_kernelspecs(const std::vector<std::string>& directories);

}  // namespace cellkeep::cli
