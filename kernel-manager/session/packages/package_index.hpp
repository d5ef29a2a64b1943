// SPDX-License-Identifier: Apache-2.0
//
// The index from which sessions may install packages, as the operator names it, and what leads
// installers inside to it. Values; pure functions.
#pragma once

#include "kernel-manager/egress/network_policy.hpp"
#include "protocol/support/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::session {

struct PackageIndex {
    std::string url;           // "https://packages.example/simple/"
    egress::AllowedHost host;  // of the address: what a session's allowlist must cover
    bool plain = false;        // http: pip uses it only with --trusted-host
};

/// An http or https address without a user's name, a query or a fragment, whose host is spelt as
/// allowlists have it. kInvalidArgument else.
Result<PackageIndex> parse_package_index(std::string_view url);

/// Where a session's packages are, inside: a virtual environment of its own, which the Python
/// kernel makes (kernels/python/cellkeep_kernel/packages.py).
std::string packages_inside();

/// The variables with which `pip install` inside, and %pip, does what PackageInstaller does:
/// "NAME=value".
std::vector<std::string> package_variables(const PackageIndex& index);

/// Programs that packages bring are found, before those of the environment.
void add_package_programs(std::vector<std::string>& variables);

}  // namespace cellkeep::session
