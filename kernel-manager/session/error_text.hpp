// SPDX-License-Identifier: Apache-2.0
//
// Errors as an agent reads them: without terminal colours, and with a hint where one is known.
#pragma once

#include <string>
#include <string_view>

namespace cellkeep::session {

/// Removes terminal escape sequences (ECMA-48 CSI and OSC).
std::string strip_escapes(std::string_view text);

/// What an agent can do about the commonest failures, in one sentence; empty for the rest. name is
/// the exception's class, kind the session API's error kind.
std::string_view hint_for(std::string_view name, std::string_view kind);

}  // namespace cellkeep::session
