// SPDX-License-Identifier: Apache-2.0
//
// `cellkeep env`: named Python environments. Each command returns the exit code.
#pragma once

#include "kernel-manager/environments/environment_store.hpp"
#include "kernel-manager/environments/python_tree.hpp"

#include <string>
#include <vector>

namespace cellkeep::cli {

struct EnvCreate {
    std::string name;
    std::string requirements;  // a file
    std::string index;         // an address; "": PyPI
    std::string python = environments::kPythonVersion;
    std::vector<std::string> sources;  // packages that are built from their source, by name
    std::vector<std::string> hosts;    // that builds may reach besides the index
};
int env_create(const EnvCreate& command);

int env_list(bool as_json);
int env_show(const std::string& name, bool as_json);
int env_remove(const std::string& name);

/// Pure: what env_list() and env_show() print.
std::string env_table(const std::vector<environments::NamedEnvironment>& all);
std::string env_text(const environments::NamedEnvironment& one);
std::string env_json(const std::vector<environments::NamedEnvironment>& all);
std::string env_json(const environments::NamedEnvironment& one);

}  // namespace cellkeep::cli
