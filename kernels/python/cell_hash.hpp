// SPDX-License-Identifier: Apache-2.0
//
// The hash by which Jupyter's front ends find the file name that a cell is debugged under: Austin
// Appleby's MurmurHash2, 32 bits, over the cell's UTF-8 text (debugInfo's hashMethod "Murmur2").
#pragma once

#include <cstdint>
#include <string_view>

namespace cellkeep::kernels::python {

/// debugInfo's hashSeed. Front ends take it from there; ipykernel's value, for those that do not.
inline constexpr std::uint32_t kCellHashSeed = 0xC70F6907U;

std::uint32_t hash_cell(std::string_view code);

}  // namespace cellkeep::kernels::python
