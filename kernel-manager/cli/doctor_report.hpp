// SPDX-License-Identifier: Apache-2.0
//
// The host's features as text: an aligned table for people, JSON for programs. Pure.
#pragma once

#include "sandbox/host_features.hpp"

#include <string>

namespace cellkeep::cli {

std::string doctor_table(const sandbox::HostFeatures& host);
std::string doctor_json(const sandbox::HostFeatures& host);

}  // namespace cellkeep::cli
