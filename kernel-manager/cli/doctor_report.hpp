// SPDX-License-Identifier: Apache-2.0
//
// The host's features as text: an aligned table for people, JSON for programs. Pure.
#pragma once

#include "sandbox/host_features.hpp"

#include <string>
#include <utility>
#include <vector>

namespace cellkeep::cli {

/// The languages of this installation, and why others that are there are not offered.
struct Languages {
    std::vector<std::string> offered;
    std::vector<std::pair<std::string, std::string>> not_offered;  // and why
};

std::string doctor_table(const sandbox::HostFeatures& host, const Languages& languages = {});
std::string doctor_json(const sandbox::HostFeatures& host, const Languages& languages = {});

}  // namespace cellkeep::cli
