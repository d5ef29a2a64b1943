// SPDX-License-Identifier: Apache-2.0
//
// A cell as a source file that clang takes: statements in functions that are called where they
// stood, the value handed to the printer, everything else unchanged, and every line and column of
// it still the cell's. A main that the cell defines and does not call is called at its end.
#pragma once

#include "kernels/cpp/text/cell_split.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace cellkeep::cpp {

/// The functions of statements are named with this and numbers.
inline constexpr std::string_view kWrapperPrefix = "cellkeep_cell_";

/// `file` is what diagnostics call the cell; `serial` is another for every text ever compiled.
std::string cell_source(
    std::string_view code,
    const std::string& file,
    std::uint64_t serial,
    const MeaningOf& meaning_of);

}  // namespace cellkeep::cpp
