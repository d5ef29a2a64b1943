// SPDX-License-Identifier: Apache-2.0
//
// What the compiler has to say of a cell, in words that need no header of clang's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cellkeep::cpp {

/// What a cell that did not compile, or was not linked, says of itself.
struct CompileFailure {
    std::string name;     // "CompileError", "LinkError"
    std::string message;  // of the first error
    std::string kind;     // "syntax", "import", "link"
    unsigned line = 0;    // of the cell, from 1; 0: nowhere in it
    unsigned column = 0;  // code points, from 1
    std::vector<std::string> traceback;
};

/// A declaration of an earlier cell, of which this one has another. Numbers of clang's, which mean
/// the same in every process that was forked from one that had read that cell.
struct Shadowed {
    std::uint64_t name = 0;
    std::uint32_t place = 0;  // 0: whatever has the name
    bool operator==(const Shadowed&) const = default;
};

}  // namespace cellkeep::cpp
