// SPDX-License-Identifier: Apache-2.0
//
// Where a program of this machine looks for its libraries. A Python that was built for one folder
// names that folder; a copy elsewhere has to look beside itself.
#pragma once

#include "protocol/support/result.hpp"

#include <string>

namespace cellkeep::environments {

/// What the copy is to say, from bin/ to lib/.
inline constexpr const char* kBesideItself = "$ORIGIN/../lib";

/// Makes the program look beside itself (DT_RUNPATH or DT_RPATH, elf(5)); there is room for that
/// where another folder is named. kInvalidArgument: it names none, or one with a shorter name, or
/// is no such program.
Status look_beside_itself(const std::string& program);

}  // namespace cellkeep::environments
