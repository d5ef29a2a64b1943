// SPDX-License-Identifier: Apache-2.0
//
// Places in a cell: clients count code points, clang counts bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cellkeep::cpp {

/// At most the end of the text.
std::size_t byte_of_point(std::string_view code, std::size_t point);
std::size_t point_of_byte(std::string_view code, std::size_t byte);

/// The name, or the chain of members (`a.b`, `p->x`, `std::sort`), that the cursor is in or just
/// behind: up to the end of the word under it. Empty if there is none.
std::string expression_at(std::string_view code, std::size_t byte);

}  // namespace cellkeep::cpp
