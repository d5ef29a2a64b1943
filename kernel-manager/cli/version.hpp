// SPDX-License-Identifier: Apache-2.0
//
// The version of this program, as the build says it.
#pragma once

#include <string>

namespace cellkeep::cli {

std::string version_text();

}  // namespace cellkeep::cli
