// SPDX-License-Identifier: Apache-2.0
//
// The principals that an operator names, with their roles and tokens:
// {"principals": [{"name": "analyst", "role": "agent", "token_sha256": "9f86d0…"}]}
// Each has either `token_sha256`, 64 lower-case hexadecimal digits, or `token`, the token itself
// (RFC 6750, section 2.1: letters, digits and -._~+/, = at the end). With the digest the file
// reveals no token; that is safe without a salt because tokens are long and random. Roles:
// "admin", "agent", "observer" (principal.hpp). Owns nothing; thread-safe.
#pragma once

#include "kernel-manager/http/access/auth.hpp"
#include "protocol/support/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::http {

/// A regular file, not a symbolic link, of this process's user, that no other user can reach
/// (mode 0600 or stricter), of at most limits::kTokenFileBytesMax bytes (else kLimitExceeded).
/// Every other fault is kInvalidArgument or the system's; none repeats a word of the file.
Result<std::vector<NamedToken>> load_token_file(const std::string& path);

/// The same from text. Unknown and repeated fields, names and tokens that are there twice, and
/// whatever is not as described above are refused; kInvalidArgument or kProtocol names the entry by
/// its place ("/principals/2/token"), because a name may be a token in the wrong place.
Result<std::vector<NamedToken>> parse_token_file(std::string_view text);

/// kInvalidArgument if one of them has this token.
Status check_not_among(const std::vector<NamedToken>& named, std::string_view token);

}  // namespace cellkeep::http
