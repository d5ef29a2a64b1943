// SPDX-License-Identifier: Apache-2.0
//
// What cells show: include/cellkeep/display.hpp calls these functions of the driver.
#pragma once

#include "kernels/cpp/process/channel.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::cpp {

/// Where it goes; `channel` lives as long as the process. A value is shown only while
/// `values_wanted` (a silent execution shows none).
void publish_to(Channel& channel);
void want_values(bool wanted);

/// What the running cell's main has returned, as a process would (0 to 255); once. Nothing: it has
/// none.
std::optional<int> take_exit_code();

/// The functions by the names that cells know them by.
std::vector<std::pair<std::string, void*>> publish_functions();

}  // namespace cellkeep::cpp
