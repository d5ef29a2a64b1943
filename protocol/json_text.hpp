// SPDX-License-Identifier: Apache-2.0
//
// JSON text made piece by piece, for the few texts that are made for every message.
// Thread-safe: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace cellkeep::protocol {

/// Appends text as a JSON string with its quotes: the same bytes as dump_json (json.hpp), faster.
void append_json_string(std::string& out, std::string_view text);

}  // namespace cellkeep::protocol
