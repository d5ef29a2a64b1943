// SPDX-License-Identifier: Apache-2.0
//
// What commands say to people: results on stdout, troubles on stderr. The log is not here.
#pragma once

#include "protocol/support/result.hpp"

#include <string_view>

namespace cellkeep::cli {

void print(std::string_view text);
void print_error(std::string_view text);
/// "cellkeep: message" and the hint on its own line.
void print_error(const Error& error);

}  // namespace cellkeep::cli
