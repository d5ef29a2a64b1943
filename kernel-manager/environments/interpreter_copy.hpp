// SPDX-License-Identifier: Apache-2.0
//
// A copy of an operator's Python that can be anywhere: its program, its standard library, its
// headers and the shared libraries that it brings; no packages and no tests. Nothing of it runs
// here. Blocks: not for the event loop.
#pragma once

#include "kernel-manager/environments/python_program.hpp"
#include "protocol/support/result.hpp"

#include <cstdint>
#include <string>

namespace cellkeep::environments {

/// The directory must not exist. kInvalidArgument if a copy elsewhere would not find its libraries;
/// kLimitExceeded beyond bytes_max.
Status copy_interpreter(
    const PythonProgram& python, const std::string& directory, std::uint64_t bytes_max);

}  // namespace cellkeep::environments
