// SPDX-License-Identifier: Apache-2.0
//
// The names of definitions that replaced earlier ones, as users wrote them: without the ABI tag.
#pragma once

#include <string>

namespace cellkeep::cpp {

/// "P[abi:cell7]::f" as people wrote it: "P::f" (shadowing.hpp says why the tag is there).
std::string without_tags(std::string text);

}  // namespace cellkeep::cpp
