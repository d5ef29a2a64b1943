// SPDX-License-Identifier: Apache-2.0
#include "kernels/python/cell_hash.hpp"

#include <cstddef>

namespace cellkeep::kernels::python {

namespace {

constexpr std::uint32_t kMultiplier = 0x5BD1E995U;

std::uint32_t byte_at(std::string_view text, std::size_t index) {
    return static_cast<unsigned char>(text[index]);
}

}  // namespace

std::uint32_t hash_cell(std::string_view code) {
    std::uint32_t hash = kCellHashSeed ^ static_cast<std::uint32_t>(code.size());
    std::size_t index = 0;
    for (; code.size() - index >= 4; index += 4) {
        std::uint32_t word = byte_at(code, index) | byte_at(code, index + 1) << 8U |
                             byte_at(code, index + 2) << 16U | byte_at(code, index + 3) << 24U;
        word *= kMultiplier;
        word ^= word >> 24U;
        word *= kMultiplier;
        hash *= kMultiplier;
        hash ^= word;
    }
    const std::size_t rest = code.size() - index;
    for (std::size_t offset = 0; offset < rest; ++offset) {
        hash ^= byte_at(code, index + offset) << (8U * offset);
    }
    if (rest > 0) {
        hash *= kMultiplier;
    }
    hash ^= hash >> 13U;
    hash *= kMultiplier;
    hash ^= hash >> 15U;
    return hash;
}

}  // namespace cellkeep::kernels::python
