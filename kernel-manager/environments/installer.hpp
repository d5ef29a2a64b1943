// SPDX-License-Identifier: Apache-2.0
//
// Has uv install packages into an environment: from one index, of wheels alone, so that nothing of
// a package runs (docs/decisions/0019-environments-of-wheels.md). Blocks: not for the event loop.
#pragma once

#include "protocol/support/result.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace cellkeep::environments {

struct InstallOrder {
    std::string uv;           // the program
    std::string environment;  // of python_tree.hpp, without packages
    std::string scratch;      // holds the environment and all else that is written
    std::string index;        // an address, checked; "": PyPI
    std::vector<std::string> requirements;
    std::vector<std::string> constraints;
    std::chrono::steady_clock::time_point deadline;
    std::uint64_t bytes_max = 0;  // of the scratch directory
    std::string wheels = {};      // a directory of wheels besides the index; "": none
    bool complete = false;        // all that is needed is named, with hashes
};

/// $CELLKEEP_UV, else uv on $PATH. kUnavailable says where to get it.
Result<std::string> find_uv();

/// kUnavailable with what uv says if the packages cannot be had or do not go together.
Status install_packages(const InstallOrder& order);

}  // namespace cellkeep::environments
