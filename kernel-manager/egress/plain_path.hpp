// SPDX-License-Identifier: Apache-2.0
//
// Tells whether every server reads a path in the same way. Only such a path can be compared with
// the path that a secret is bound to. Pure. Any thread; the text is the guest's.
#pragma once

#include <string_view>

namespace cellkeep::egress {

/// Returns true if the path of an origin-form target (RFC 9112, section 3.2.1) has one reading. The
/// query does not count. Refused are:
///  - empty segments, "." and segments that begin with "..", also if a server drops spaces, control
///    characters or characters outside ASCII before it looks for dots;
///  - a percent sign without two hexadecimal digits ("%u002e" is an escape of some servers);
///  - encoded control characters, dots, slashes, backslashes, percent signs and semicolons;
///  - a semicolon or backslash (some servers cut parameters off there before they resolve dots);
///  - encoded bytes that are not well-formed UTF-8 (RFC 3629, section 3), such as the overlong
///    "%c0%ae", and characters that compatibility forms turn into one of the above (UAX #15).
bool is_plain_path(std::string_view origin);

}  // namespace cellkeep::egress
