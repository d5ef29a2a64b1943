// SPDX-License-Identifier: Apache-2.0
//
// JSON strings in valid text: decodes them, whole or only their beginning, and cuts them into
// pieces without decoding them. Thread-safe: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::protocol {

/// Decodes a JSON string, which is given with its quotes. Returns "" for any other valid value.
/// Precondition: the text is valid JSON.
std::string read_json_string(std::string_view quoted);
/// Decodes the beginning of a string: at most bytes_max bytes, to the end of a character.
std::string read_json_string(std::string_view quoted, std::size_t bytes_max);

/// The text between the quotes; "" for any other value.
std::string_view inside_json_string(std::string_view quoted);

/// Returns where the text between the quotes can be cut so that both parts are valid inside a
/// string: not within a character or an escape, nor between the halves of a surrogate pair. The
/// place is the last one within bytes_max bytes, and at least after the first character.
std::size_t cut_json_string(std::string_view inside, std::size_t bytes_max);

struct JsonStrings {
    std::vector<std::string> strings;
    bool complete = true;  // false: the array goes on past the bound
};
/// The strings in the first bytes_max bytes of a JSON array's text. Leaves out other elements.
/// Returns none for any other value. Precondition: the text is valid JSON.
JsonStrings read_json_strings(std::string_view array, std::size_t bytes_max);

}  // namespace cellkeep::protocol
