// SPDX-License-Identifier: Apache-2.0
//
// The files that a session begins with, some of which are the operator's and mounted read-only.
// mounted: where those are in the workspace, and their names in the operator's directory, which may
// be null if there are none. Pure functions but for the files.
#pragma once

#include "kernel-manager/execution/file_writing.hpp"
#include "kernel-manager/execution/inputs_directory.hpp"
#include "protocol/support/result.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace cellkeep::session {

using MountedInputs = std::map<std::string, std::string>;

/// Whether the files have places of their own in the workspace. kInvalidArgument in the field
/// "files/N/path".
Status check_start_files(const std::vector<InputFile>& files, const MountedInputs& mounted);

/// What puts the files in place that are not mounted. Errors are those of check_start_files().
Result<std::shared_ptr<FileWriting>> prepare_start_files(
    const sandbox::Workspace& workspace,
    std::vector<InputFile> files,
    const MountedInputs& mounted,
    std::shared_ptr<const InputsDirectory> inputs);

/// Opens the operator's file that is mounted as `name`. Errors are those of
/// InputsDirectory::open_file().
Result<sandbox::Workspace::OpenedFile> open_mounted(
    const InputsDirectory& inputs, const std::string& name);

}  // namespace cellkeep::session
