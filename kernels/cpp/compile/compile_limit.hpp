// SPDX-License-Identifier: Apache-2.0
//
// Limits of time and memory for clang 19's parser. It does not end if macros or conditional
// directives leave a bracket open: it reads the end of the cell for ever, and allocates meanwhile.
#pragma once

#include "kernels/cpp/process/channel.hpp"

#include <csignal>
#include <cstddef>
#include <ctime>
#include <string>

namespace cellkeep::cpp {

/// Processor time of this thread for one cell. A cell with heavy headers takes a third of it.
inline constexpr unsigned kCompileSeconds = 20;
/// What the resident memory of the process may grow by while one cell compiles. A cell with heavy
/// headers takes a third of it. A memory limit of the session may end the process first.
inline constexpr std::size_t kCompileBytes = 2ULL << 30U;

/// While it lives, this thread may work for kCompileSeconds, and the process may grow by
/// kCompileBytes. Then the process sends the failure as the cell's event and ends. One at a time.
class CompileLimit {
 public:
    struct Failures {
        std::string time;
        std::string memory;
    };
    CompileLimit(const Channel& channel, const Failures& failures);
    ~CompileLimit();
    CompileLimit(const CompileLimit&) = delete;
    CompileLimit& operator=(const CompileLimit&) = delete;

 private:
    timer_t timer_{};
    bool set_ = false;
    struct sigaction before_ {};  // a cell may have its own use for the signal
};

}  // namespace cellkeep::cpp
