// SPDX-License-Identifier: Apache-2.0
//
// The host's features as text: an aligned table for people, JSON for programs. Pure.
#pragma once

#include "kernel-manager/languages/not_offered.hpp"
#include "sandbox/host_features.hpp"

#include <string>
#include <vector>

namespace cellkeep::cli {

/// The languages of this installation, and why others are not offered.
struct Languages {
    std::vector<std::string> offered;
    std::vector<session::NotOffered> not_offered;
};

std::string doctor_table(const sandbox::HostFeatures& host, const Languages& languages = {});
std::string doctor_json(const sandbox::HostFeatures& host, const Languages& languages = {});

}  // namespace cellkeep::cli
