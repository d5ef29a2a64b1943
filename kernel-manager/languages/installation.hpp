// SPDX-License-Identifier: Apache-2.0
//
// Where the parts of this installation are on the host.
#pragma once

#include "kernel-manager/image/prepare.hpp"
#include "protocol/support/result.hpp"

#include <string>
#include <vector>

namespace cellkeep::session {

/// Where the parts of this installation are on the host.
struct Installation {
    std::string binary_dir;          // holds cellkeep, cellkeep-sandbox, cellkeep-kernel-*
    std::string python_package_dir;  // holds the package cellkeep_kernel
    std::string python_environment;  // a virtual environment (sys.prefix)
    std::string driver_module = {};  // cellkeep_driver.py
    std::string environments = {};   // the packages of languages, each a folder
    /// Of languages that are folders; the operator's own come last.
    std::vector<std::string> kernel_directories = {};
    std::string program_path = {};  // where programs of theirs are looked for, as in $PATH
    /// Libraries that a package brings for programs inside, a folder; empty: the system has them.
    std::string shared_libraries = {};
};

/// The installation this program belongs to: beside /proc/self/exe in an installed tree, or the
/// build tree and its sources. kUnavailable names what is missing and the command that makes it.
Result<Installation> find_installation();

/// What of it goes into images.
image::Sources image_sources(const Installation& installation);

}  // namespace cellkeep::session
