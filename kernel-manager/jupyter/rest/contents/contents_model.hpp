// SPDX-License-Identifier: Apache-2.0
//
// Files, directories and checkpoints as clients of Jupyter Server's contents API read them (its
// services/api/api.yaml, "Contents" and "Checkpoints"). Pure functions.
#pragma once

#include "kernel-manager/jupyter/rest/contents/contents_place.hpp"
#include "kernel-manager/session/session_info.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace cellkeep::jupyter {

/// Of all checkpoints: each file has at most one, as in Jupyter Server.
inline constexpr std::string_view kCheckpointId = "checkpoint";

bool is_notebook_name(std::string_view name);
/// The last component of a path.
std::string_view name_of(std::string_view path);
/// "a" and "b" make "a/b"; "" and "b" make "b".
std::string join_path(const std::string& directory, std::string_view name);

/// A file or directory without its content. The workspace has no time of creation, so "created" is
/// "last_modified". A file whose name ends with .ipynb has the type "notebook".
nlohmann::json entry_model(const ContentsPlace& place, const sandbox::Entry& entry);
/// The directory that is a session's workspace, without its content.
nlohmann::json session_directory_model(std::string_view name, const session::SessionInfo& info);
/// The root, without its content.
nlohmann::json root_model();

/// Of a path of the API, for a Location.
std::string contents_location(std::string_view api_path);

/// {"id", "last_modified"}
nlohmann::json checkpoint_model(const sandbox::Entry& entry);
/// Where a file's checkpoint is: a/b.txt has a/.ipynb_checkpoints/b-checkpoint.txt, as in Jupyter
/// Server, whose users know these files.
std::string checkpoint_path(const std::string& path);
inline constexpr std::string_view kCheckpointDirectory = ".ipynb_checkpoints";

}  // namespace cellkeep::jupyter
