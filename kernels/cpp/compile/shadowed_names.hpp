// SPDX-License-Identifier: Apache-2.0
//
// The names of definitions that replaced earlier ones, as users wrote them: without the ABI tag.
#pragma once

#include <string>

namespace cellkeep::cpp {

/// Turns "P[abi:cell7]::f" into "P::f" (shadowing.hpp says why there is a tag).
std::string without_tags(std::string text);

}  // namespace cellkeep::cpp
