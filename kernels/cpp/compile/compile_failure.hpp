// SPDX-License-Identifier: Apache-2.0
//
// Why a cell did not compile. Needs no header of clang.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cellkeep::cpp {

/// The error of a cell that did not compile or link.
struct CompileFailure {
    std::string name;     // "CompileError", "LinkError"
    std::string message;  // of the first error
    std::string kind;     // "syntax", "import", "link"
    unsigned line = 0;    // of the cell, from 1; 0: nowhere in it
    unsigned column = 0;  // code points, from 1
    std::vector<std::string> traceback;
};

/// A declaration of an earlier cell that this cell declares again. clang's numbers, which mean the
/// same in every process that was forked after that earlier cell was read.
struct Shadowed {
    std::uint64_t name = 0;
    std::uint32_t place = 0;  // 0: whatever has the name
    bool operator==(const Shadowed&) const = default;
};

}  // namespace cellkeep::cpp
