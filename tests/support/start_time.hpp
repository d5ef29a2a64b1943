// SPDX-License-Identifier: Apache-2.0
//
// The time at which tests begin that say themselves what time it is.
#pragma once

#include <chrono>

namespace cellkeep::session::test {

inline constexpr std::chrono::steady_clock::time_point kStart{};

}  // namespace cellkeep::session::test
