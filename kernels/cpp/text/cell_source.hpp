// SPDX-License-Identifier: Apache-2.0
//
// Makes clang's source file of a cell. Statements become functions that are called where the
// statements stood, and the value goes to the printer. The rest is unchanged, and every line and
// column stays the cell's. A main that the cell defines and does not call is called at its end.
#pragma once

#include "kernels/cpp/text/cell_split.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace cellkeep::cpp {

/// The functions of statements are named with this and numbers.
inline constexpr std::string_view kWrapperPrefix = "cellkeep_cell_";

/// `file` is the cell's name in diagnostics. `serial` differs for every text that is compiled.
std::string cell_source(
    std::string_view code,
    const std::string& file,
    std::uint64_t serial,
    const MeaningOf& meaning_of);

}  // namespace cellkeep::cpp
