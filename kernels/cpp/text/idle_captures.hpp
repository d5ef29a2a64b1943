// SPDX-License-Identifier: Apache-2.0
//
// `[&]` and `[=]` that a lambda in a variable's initializer begins with, wherever in it. At the top
// of a file nothing is there to be captured, and C++ refuses to be asked for it.
#pragma once

#include "kernels/cpp/text/token_walk.hpp"

#include <cstddef>
#include <vector>

namespace cellkeep::cpp {

/// Where in the cell each `&`, `=` and comma behind it stands that is to be left out, in the tokens
/// [first, end) of a declaration. Lambdas inside of lambdas have something to capture.
std::vector<std::size_t> idle_captures(const TokenWalk& tokens, std::size_t first, std::size_t end);

}  // namespace cellkeep::cpp
