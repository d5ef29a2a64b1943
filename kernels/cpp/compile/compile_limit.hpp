// SPDX-License-Identifier: Apache-2.0
//
// An end for what clang 19 finds none for: brackets that macros or conditional directives leave
// open make its parser read the end of the cell for ever.
#pragma once

#include "kernels/cpp/process/channel.hpp"

#include <csignal>
#include <ctime>
#include <string>

namespace cellkeep::cpp {

/// Of this thread's processor time, for one cell: a cell with heavy headers takes a third of it.
inline constexpr unsigned kCompileSeconds = 20;

/// While it lives, this thread may work for kCompileSeconds; then the process says that the cell
/// has failed, with `failure` as its fallback's event, and ends.
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
