// SPDX-License-Identifier: Apache-2.0
//
// Files and directories of a workspace as E2B's EntryInfo (spec/envd/filesystem/filesystem.proto,
// as JSON). Pure, but for what it asks of the workspace.
#pragma once

#include "protocol/support/result.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace cellkeep::e2b {

/// What is at the path `inside` of the workspace and is called `shown`. kNotFound.
Result<nlohmann::json> entry_info(
    const sandbox::Workspace& workspace, const std::string& inside, const std::string& shown);

/// "-rw-r--r--"
std::string permissions_text(const sandbox::FileState& state);
/// The last component; of the root "/".
std::string name_of(const std::string& path);

}  // namespace cellkeep::e2b
