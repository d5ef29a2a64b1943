// SPDX-License-Identifier: Apache-2.0
//
// The target of a request (RFC 9112, section 3.2) as a value. The path is cut into segments first
// and each segment is decoded afterwards, so an encoded slash never makes a new segment; "." and
// ".." are refused, not resolved, however they are spelled.
#pragma once

#include "protocol/support/result.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::http {

struct Target {
    std::string path = "/";  // as sent, without the query: for logs and problem bodies
    std::string query_text;  // as sent, without the question mark; may hold secrets: not for logs
    std::string authority;   // of the absolute form, as sent; the Host field must name the same
    std::vector<std::string>
        segments;  // decoded; "/" has none, a trailing slash makes an empty one
    std::map<std::string, std::string, std::less<>> query;  // decoded; the first of a name counts

    std::optional<std::string> find_query(std::string_view name) const;
};

/// Origin form, absolute form and "*". kInvalidArgument says what is wrong: no leading slash, a bad
/// percent code, NUL, a "." or ".." segment, an absolute form without a host or with user
/// information.
Result<Target> parse_target(std::string_view text);

/// %XX for everything that may not stand in one path segment (RFC 3986, section 3.3).
std::string encode_segment(std::string_view text);

}  // namespace cellkeep::http
