// SPDX-License-Identifier: Apache-2.0
//
// The time at which tests with a clock of their own begin.
#pragma once

#include <chrono>

namespace cellkeep::session::test {

inline constexpr std::chrono::steady_clock::time_point kStart{};

}  // namespace cellkeep::session::test
