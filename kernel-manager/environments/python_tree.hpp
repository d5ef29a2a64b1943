// SPDX-License-Identifier: Apache-2.0
//
// The files of a named environment: a virtual environment of Debian's CPython that can be
// anywhere (its programs look for Python beside themselves), with the default environment behind
// it. Nothing in it runs here. Blocks: not for the event loop.
#pragma once

#include "protocol/support/result.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace cellkeep::environments {

/// Of the Debian that this was built on (cmake/SystemPython.cmake).
inline constexpr const char* kPythonVersion = CELLKEEP_PYTHON_VERSION;
inline constexpr const char* kPythonProgram = "/usr/bin/python" CELLKEEP_PYTHON_VERSION;

/// That version or Debian's program of it; kInvalidArgument for every other Python.
Status check_python(std::string_view wanted);

/// Where the packages of an environment are.
std::string packages_of(const std::string& environment);

/// An environment without packages. The directory must not exist.
Status make_empty_environment(const std::string& directory);

/// After the installer: what the environment does not have comes from the default one, at its place
/// inside; sources get bytecode; all is readable by all and of one date, so that the same packages
/// are the same files. Compiles until the deadline at most. kTimeout, kLimitExceeded (bytes_max).
Status finish_environment(
    const std::string& directory,
    std::chrono::steady_clock::time_point deadline,
    std::uint64_t bytes_max);

}  // namespace cellkeep::environments
