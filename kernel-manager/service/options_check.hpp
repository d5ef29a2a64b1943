// SPDX-License-Identifier: Apache-2.0
//
// Whether what is asked of a new session may be granted: limits against their ceilings, names,
// variables, paths. Pure functions; kInvalidArgument names the field.
#pragma once

#include "kernel-manager/limits/limits.hpp"
#include "kernel-manager/session/session_options.hpp"
#include "protocol/support/result.hpp"

#include <chrono>
#include <map>
#include <string>
#include <string_view>

namespace cellkeep::session {

/// The longest that a budget of time, or the end of a session, may be: far below what overflows
/// where it is added to a clock's now.
inline constexpr std::chrono::milliseconds kLimitTimeMax = std::chrono::hours(24 * 365 * 100);

Status check_limits(const SessionLimits& asked, const LimitCeilings& most);
/// A UUID in its usual form (RFC 9562, section 4), in either case; empty is a wish for none.
Status check_kernel_id(const std::string& id);
/// What every shell takes: letters, digits and underscores, no digit first (POSIX.1, "Name").
bool is_variable_name(std::string_view name);
/// Such names, text without NUL, limits::kEnvironmentVariablesMax and
/// kEnvironmentBytesMax.
Status check_environment_variables(const std::map<std::string, std::string>& env);
/// Relative and within the workspace, as sandbox::parse_workspace_path has it.
Status check_working_directory(const std::string& path);

/// All of the above.
Status check_options(const SessionOptions& options, const LimitCeilings& ceilings);

}  // namespace cellkeep::session
