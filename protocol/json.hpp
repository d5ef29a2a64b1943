// SPDX-License-Identifier: Apache-2.0
//
// JSON text to values and back, the only two ways in Cellkeep: bounded, strict, never throwing.
// What comes from a peer goes through parse_json; nothing else calls nlohmann's own parser.
// Thread-safe: pure functions.
#pragma once

#include "protocol/limits.hpp"
#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace cellkeep::protocol {

/// What a repeated key means (RFC 8259, section 4, leaves it open).
enum class RepeatedKeys { kLastCounts, kRefused };

/// JSON text to a value (RFC 8259): strict, bounded depth (limits::kJsonDepthMax), never throws.
/// kProtocol says what and at which byte; kLimitExceeded: more than values_max values.
/// A byte order mark, invalid UTF-8, lone surrogates, NaN, numbers that do not fit a double and
/// anything after the value are refused; a repeated key too if keys says so.
Result<nlohmann::json> parse_json(
    std::string_view text,
    std::string_view what,
    RepeatedKeys keys = RepeatedKeys::kLastCounts,
    std::size_t values_max = limits::kJsonValuesMax);

/// The same, and the value must be an object.
Result<nlohmann::json> parse_json_object(std::string_view text, std::string_view what);

/// Whether the text is JSON, of any depth and any number of values. Builds no values.
bool is_json(std::string_view text);

/// JSON to text. Invalid UTF-8 in strings is replaced by U+FFFD, never thrown.
std::string dump_json(const nlohmann::json& value);

}  // namespace cellkeep::protocol
