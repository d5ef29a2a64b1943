// SPDX-License-Identifier: Apache-2.0
//
// What cells show: include/cellkeep/display.hpp calls these functions of the driver.
#pragma once

#include "kernels/cpp/channel.hpp"

#include <string>
#include <utility>
#include <vector>

namespace cellkeep::cpp {

/// Where it goes; `channel` lives as long as the process. A value is shown only while
/// `values_wanted` (a silent execution shows none).
void publish_to(Channel& channel);
void want_values(bool wanted);

/// The functions by the names that cells know them by.
std::vector<std::pair<std::string, void*>> publish_functions();

}  // namespace cellkeep::cpp
