// SPDX-License-Identifier: Apache-2.0
//
// How named environments are called, and the kernels that run in them. Pure functions.
#pragma once

#include "protocol/support/result.hpp"

#include <string>
#include <string_view>

namespace cellkeep::environments {

/// What an installation brings.
inline constexpr std::string_view kDefaultEnvironment = "default";
/// The kernel of the environment "geo" is "python3-geo", for all front ends.
inline constexpr std::string_view kKernelPrefix = "python3-";
/// "python3-" and it make the name of a language (protocol::kLanguageBytesMax).
inline constexpr std::size_t kNameBytesMax = 24;

/// kInvalidArgument if an environment cannot be called that: at most kNameBytesMax lower-case
/// letters, digits, "_" and "-", a letter or a digit first; not "default".
Status check_name(std::string_view name);

/// By which name the language is offered in the environment: itself in the default one, which may
/// also be called "".
std::string offered_name(std::string_view language, std::string_view environment);

}  // namespace cellkeep::environments
