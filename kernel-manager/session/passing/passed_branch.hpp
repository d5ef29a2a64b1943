// SPDX-License-Identifier: Apache-2.0
//
// Writes and reads the description of a branch for its way from one program in the server's process
// to another. Pure functions; those that read throw json::exception.
#pragma once

#include "kernel-manager/session/session_info.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>

namespace cellkeep::session {

inline constexpr std::size_t kPassedIdBytesMax = 64;

/// Of a session.
std::string read_session_id(const nlohmann::json& id);
/// null: it is none.
nlohmann::json write_branch(const std::optional<BranchInfo>& branch);
std::optional<BranchInfo> read_branch(const nlohmann::json& text);

}  // namespace cellkeep::session
