// SPDX-License-Identifier: Apache-2.0
//
// What an environment is made of, and its bounds. Values.
#pragma once

#include "kernel-manager/environments/debian/debian_order.hpp"
#include "kernel-manager/environments/node/node_installer.hpp"
#include "kernel-manager/environments/python_tree.hpp"
#include "kernel-manager/environments/source_package.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cellkeep::environments {

/// Each is a bind mount and a kernelspec, and a bound that an operator can see.
inline constexpr std::size_t kEnvironmentsMax = 32;
/// Of one environment's files. While it is made, wheels and unpacked packages lie beside it.
inline constexpr std::uint64_t kEnvironmentBytesMax = 8ULL << 30U;
inline constexpr std::uint64_t kBuildBytesFactor = 3;
/// From the first request to the last file.
inline constexpr std::chrono::minutes kEnvironmentTimeMax{20};

/// Below an image's root.
inline constexpr const char* kImageFolder = "/environment";
/// Likewise, of an environment that brings its Python (kInterpreterInside).
inline constexpr const char* kInterpreterFolder = "/interpreter";

struct EnvironmentBounds {
    std::size_t count = kEnvironmentsMax;
    std::uint64_t bytes = kEnvironmentBytesMax;
    std::chrono::milliseconds time = kEnvironmentTimeMax;
};

struct EnvironmentOrder {
    std::string name;
    std::string requirements;             // a file's text, or what lock_file.hpp made of one
    std::string index;                    // an address; "": PyPI
    std::string uv;                       // the program
    std::string default_packages;         // the folder of the default environment's packages
    std::string kernel_package = {};      // the folder that has the kernel's own Python package
    std::string python = kPythonVersion;  // of find_python()
    std::string folders = {};             // where programs are looked for, as in $PATH
    /// Packages that are built from their source, by name. All others are wheels of the index.
    std::vector<std::string> sources = {};
    SourceBuilder build_source = {};  // set if there are such
    bool locked = false;              // the requirements are all that it needs, with hashes
    std::string replaces = {};        // created_at of the one that it is made of
    NodeOrder node = {};
    DebianOrder debian = {};
};

}  // namespace cellkeep::environments
