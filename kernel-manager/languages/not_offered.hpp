// SPDX-License-Identifier: Apache-2.0
//
// Languages that a server could have and does not: why, and what gives them. Plain values, pure
// functions.
#pragma once

#include "protocol/support/result.hpp"

#include <string>
#include <vector>

namespace cellkeep::session {

struct NotOffered {
    std::string language;   // or the folder's name, if kernel.json does not say
    std::string reason;     // "it needs the program node, which is not on PATH"
    std::string hint = {};  // one sentence that says what to do, or empty
};

/// Cellkeep's own languages beside Python that are in neither list: this build or this installation
/// does not have them.
std::vector<NotOffered> find_absent_languages(
    const std::vector<std::string>& offered, const std::vector<NotOffered>& known);

/// "REASON. HINT"
std::string describe(const NotOffered& language);

/// kInvalidArgument in the field "language": it is not offered, and, if it is in the list, why and
/// what to do (as the hint).
Error refuse_language(const std::string& language, const std::vector<NotOffered>& not_offered);

}  // namespace cellkeep::session
