// SPDX-License-Identifier: Apache-2.0
//
// Errors as an agent reads them: without terminal colours, and with a hint.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::session {

/// Removes terminal escape sequences (ECMA-48 CSI and OSC).
std::string strip_escapes(std::string_view text);

/// What is known of a failure that a hint may depend on.
struct HintFacts {
    std::string_view name;     // the exception's class; may be empty
    std::string_view kind;     // the session API's error kind
    std::optional<int> line;   // in the submitted code
    bool has_network = false;  // the session may reach some hosts
};

/// What an agent can do about it, in one sentence that ends in a full stop. Never empty: what is
/// not known by its kind or name is answered with the place to look at.
std::string hint_for(const HintFacts& facts);

}  // namespace cellkeep::session
