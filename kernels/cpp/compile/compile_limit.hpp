// SPDX-License-Identifier: Apache-2.0
//
// A time limit for clang 19's parser. It does not end if macros or conditional directives leave a
// bracket open: it reads the end of the cell for ever.
#pragma once

#include "kernels/cpp/process/channel.hpp"

#include <csignal>
#include <ctime>
#include <string>

namespace cellkeep::cpp {

/// Processor time of this thread for one cell. A cell with heavy headers takes a third of it.
inline constexpr unsigned kCompileSeconds = 20;

/// While it lives, this thread may work for kCompileSeconds. Then the process sends `failure` as
/// the cell's event and ends.
class CompileLimit {
 public:
    CompileLimit(const Channel& channel, const std::string& failure);
    ~CompileLimit();
    CompileLimit(const CompileLimit&) = delete;
    CompileLimit& operator=(const CompileLimit&) = delete;

 private:
    timer_t timer_{};
    bool set_ = false;
    struct sigaction before_ {};  // a cell may have its own use for the signal
};

}  // namespace cellkeep::cpp
