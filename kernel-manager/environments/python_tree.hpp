// SPDX-License-Identifier: Apache-2.0
//
// The files of a named environment: a virtual environment that can be anywhere (its programs look
// for Python beside themselves). Of Debian's Python, with the default environment behind it; or of
// a Python that it brings, and alone. No package of it runs here. Blocks: not for the event loop.
#pragma once

#include "kernel-manager/environments/python_program.hpp"
#include "protocol/support/result.hpp"

#include <chrono>
#include <cstdint>
#include <string>

namespace cellkeep::environments {

/// Inside a session: the Python that its environment has brought.
inline constexpr const char* kInterpreterInside = "/opt/cellkeep/interpreter";
/// Inside a session: the folder that has the kernel's own Python package.
inline constexpr const char* kKernelPackageInside = "/opt/cellkeep/python";

/// Where the packages of an environment are.
std::string packages_of(const std::string& environment, const PythonProgram& python = {});

/// An environment without packages, for the installer. The directory must not exist.
Status make_empty_environment(const std::string& directory, const PythonProgram& python);

struct FinishOrder {
    std::string directory;    // the environment
    std::string interpreter;  // the copy of a Python that it brings, another directory
    std::chrono::steady_clock::time_point deadline;
    std::uint64_t bytes_max = 0;      // of all together
    std::string kernel_package = {};  // the folder of the kernel's own modules; "": none
};

/// After the installer: it is as a session needs it; sources get bytecode; all is readable by all
/// and of one date, so that the same packages are the same files. What an environment of Debian's
/// Python does not have comes from the default one, at its place inside. Compiles until the
/// deadline at most. kTimeout, kLimitExceeded.
Status finish_environment(const FinishOrder& order, const PythonProgram& python);

/// Puts another folder into an environment that is finished, readable by all and of the same date.
Status add_to_environment(
    const std::string& directory, const std::string& folder, const std::string& name);

}  // namespace cellkeep::environments
