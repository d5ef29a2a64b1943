// SPDX-License-Identifier: Apache-2.0
//
// Finds `[&]` and `[=]` of lambdas in the initializers of variables. At the top of a file there is
// nothing to capture, and C++ does not allow a default capture there.
#pragma once

#include "kernels/cpp/text/token_walk.hpp"

#include <cstddef>
#include <vector>

namespace cellkeep::cpp {

/// The places in the cell of each `&` or `=`, and of a comma after it, that must be left out. Looks
/// at the tokens [first, end) of a declaration. Lambdas within lambdas keep theirs.
std::vector<std::size_t> idle_captures(const TokenWalk& tokens, std::size_t first, std::size_t end);

}  // namespace cellkeep::cpp
