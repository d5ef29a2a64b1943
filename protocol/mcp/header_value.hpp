// SPDX-License-Identifier: Apache-2.0
//
// Text of an MCP message in a header of its HTTP request (2026-07-28): as it stands if a header can
// hold it, else as base64 between =?base64? and ?=. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::protocol {

std::string encode_mcp_header(std::string_view value);

/// The reverse. Nothing if what is between the marks is no base64.
std::optional<std::string> decode_mcp_header(std::string_view value);

}  // namespace cellkeep::protocol
