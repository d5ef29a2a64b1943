// SPDX-License-Identifier: Apache-2.0
//
// Base64 (RFC 4648, section 4), strict: the standard alphabet, padding required, no white space,
// unused bits zero. What decodes has exactly one spelling.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::protocol {

std::optional<std::string> decode_base64(std::string_view text);
std::string encode_base64(std::string_view bytes);

}  // namespace cellkeep::protocol
