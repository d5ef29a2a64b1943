// SPDX-License-Identifier: Apache-2.0
//
// Small operations on text that several rooms need. They look at bytes and know no encoding.
#pragma once

#include <string_view>

namespace cellkeep {

/// Returns the text without the characters of `around` at both of its ends. The default is what
/// HTTP calls optional white space (RFC 9110, section 5.6.3). The result points into `text`.
constexpr std::string_view trim(std::string_view text, std::string_view around = " \t") {
    const std::size_t first = text.find_first_not_of(around);
    if (first == std::string_view::npos) {
        return {};
    }
    return text.substr(first, text.find_last_not_of(around) - first + 1);
}

}  // namespace cellkeep
