// SPDX-License-Identifier: Apache-2.0
//
// Which Python an environment is of: Debian's, which every session has, or one of the operator's,
// which the environment brings with it. Blocks: not for the event loop.
#pragma once

#include "protocol/support/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::environments {

/// Of the Debian that this was built on (cmake/SystemPython.cmake).
inline constexpr const char* kPythonVersion = CELLKEEP_PYTHON_VERSION;
inline constexpr const char* kPythonProgram = "/usr/bin/python" CELLKEEP_PYTHON_VERSION;
inline constexpr int kPythonMinor = CELLKEEP_PYTHON_MINOR;

/// The minor versions of CPython 3 that the kernel runs in (kernels/python/host_module.cpp).
inline constexpr int kPythonMinorMin = 9;
inline constexpr int kPythonMinorMax = 14;
/// From here on the kernel's own packages have the versions that the default environment has;
/// IPython 9 does not run before.
inline constexpr int kPythonMinorPinned = 11;

struct PythonProgram {
    std::string program = kPythonProgram;  // the file itself
    std::string version = kPythonVersion;  // "3.12.1"; Debian's: without the patch
    int minor = kPythonMinor;
    bool brought = false;  // the environment has a copy of it; the rest is for that
    std::string prefix = {};
    std::string standard_library = {};  // beneath the prefix
    std::string headers = {};           // likewise, or empty
    /// Shared libraries beneath the prefix that it uses, but for those of its standard library.
    std::vector<std::string> libraries = {};

    /// "python3.12", a folder's and a program's name.
    std::string name() const { return "python3." + std::to_string(minor); }
};

/// Whether a record's version is that of a Python that its environment has brought: it has the
/// patch. One without is Debian's, of this machine or of what it was before an upgrade.
bool is_brought(std::string_view version);

/// wanted: "3.12", which is looked for in folders (as $PATH has them), or a path. It is run there
/// to ask it about itself, with no package and no variable of the caller's; scratch is an empty
/// folder where it runs. kPythonVersion and Debian's program, by whatever way, are Debian's.
/// kInvalidArgument for what is no CPython 3.9 to 3.14 for this machine that is complete.
Result<PythonProgram> find_python(
    const std::string& wanted, std::string_view folders, const std::string& scratch);

}  // namespace cellkeep::environments
