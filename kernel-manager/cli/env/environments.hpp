// SPDX-License-Identifier: Apache-2.0
//
// `cellkeep env`: named Python environments. Each command returns the exit code.
#pragma once

#include "kernel-manager/environments/environment_store.hpp"
#include "kernel-manager/environments/python_tree.hpp"

#include <optional>
#include <string>
#include <vector>

namespace cellkeep::cli {

/// At most one of requirements, lock, conda and project is set; none only if node_packages or
/// debian_packages is.
struct EnvCreate {
    std::string name;
    std::string requirements;         // a file
    std::string lock;                 // a file
    std::string conda;                // a file
    std::string project;              // a directory
    std::vector<std::string> extras;  // of the project
    std::string index;                // an address; "": PyPI
    std::optional<std::string> python;
    std::vector<std::string> sources;          // packages that are built from their source, by name
    std::vector<std::string> hosts;            // that builds may reach besides the index
    std::string node_packages;                 // a package.json, or its directory
    std::string node_registry;                 // an address; "": npm's own
    std::vector<std::string> debian_packages;  // NAME or NAME=VERSION
};
int env_create(const EnvCreate& command);

/// What is not set is as it was.
struct EnvUpdate {
    std::string name;
    std::optional<std::string> index;
    std::optional<std::string> python;
    std::vector<std::string> hosts;
    std::optional<std::string> node_registry;
};
int env_update(const EnvUpdate& command);

int env_list(bool as_json);
int env_show(const std::string& name, bool as_json);
/// Its packages as requirements.
int env_export(const std::string& name);
int env_remove(const std::string& name);

/// Pure: what env_list(), env_show() and env_export() print.
std::string env_table(const std::vector<environments::NamedEnvironment>& all);
std::string env_text(const environments::NamedEnvironment& one);
std::string env_json(const std::vector<environments::NamedEnvironment>& all);
std::string env_json(const environments::NamedEnvironment& one);
std::string env_requirements(const environments::NamedRecord& record);
/// Pure: --python if it is given, else what the conda file names, else Debian's own.
std::string chosen_python(const EnvCreate& command, const std::optional<std::string>& of_file);
/// Pure: what makes the environment again. The index is the one that may be shown.
EnvUpdate completed(EnvUpdate command, const environments::NamedRecord& record);

}  // namespace cellkeep::cli
