// SPDX-License-Identifier: Apache-2.0
//
// The characters that stand for themselves in a JSON string and take one byte (RFC 8259, section
// 7). Most texts consist of them, so code that reads or writes strings passes over them quickly.
// Thread-safe: pure functions.
#pragma once

#include <cstddef>
#include <string_view>

namespace cellkeep::protocol {

/// Returns the end of the run of such characters that begins at `at`; at most `end`. Precondition:
/// at <= end <= text.size().
std::size_t skip_plain_characters(std::string_view text, std::size_t at, std::size_t end);

}  // namespace cellkeep::protocol
