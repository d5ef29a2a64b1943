// SPDX-License-Identifier: Apache-2.0
//
// Paths as E2B's clients name them, and the same in the session's workspace, which is their home:
// /home/user and /workspace are one directory. Pure.
#pragma once

#include "protocol/support/result.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::e2b {

inline constexpr std::string_view kHome = "/home/user";
/// Before it is made absolute.
inline constexpr std::size_t kGuestPathBytesMax = 4095;

/// Absolute and without "." and "..": a relative path begins at home, as does "~".
std::string absolute_path(std::string_view path);

struct GuestPath {
    std::string shown;   // absolute_path()
    std::string inside;  // of the workspace (sandbox::parse_workspace_path); empty: itself
};
/// kPermissionDenied: it is not beneath the workspace (path_elsewhere()). kInvalidArgument as
/// parse_workspace_path().
Result<GuestPath> parse_guest_path(std::string_view path);

/// What absolute_path() gives, if that is not beneath the workspace. Nullopt also for a path that
/// no program can be given.
std::optional<std::string> path_elsewhere(std::string_view path);

/// The path of something beneath a directory, as the client names that.
std::string join_path(const std::string& directory, std::string_view name);

}  // namespace cellkeep::e2b
