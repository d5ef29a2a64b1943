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

/// Sets where output goes; `channel` must live as long as the process.
void publish_to(Channel& channel);
/// Sets whether the values of cells are shown from now on (a silent execution shows none).
void want_values(bool wanted);

/// Takes the exit code, 0 to 255, that the running cell's main has returned. Returns nullopt if
/// there is none.
std::optional<int> take_exit_code();

/// The functions that cells call, by their C names.
std::vector<std::pair<std::string, void*>> publish_functions();

}  // namespace cellkeep::cpp
