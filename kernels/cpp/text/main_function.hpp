// SPDX-License-Identifier: Apache-2.0
//
// Cells that are whole programs: where main is declared and where it is called.
#pragma once

#include "kernels/cpp/text/token_walk.hpp"

#include <cstddef>

namespace cellkeep::cpp {

/// Whether the function declared in [begin, end) is named main and is not a member.
bool declares_main(const TokenWalk& walk, std::size_t begin, std::size_t end);
/// Whether [begin, end) calls `main(…)`, at any depth. A declaration does not count.
bool calls_main(const TokenWalk& walk, std::size_t begin, std::size_t end);

}  // namespace cellkeep::cpp
