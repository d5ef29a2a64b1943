// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/packages/package_index.hpp"

#include "kernel-manager/egress/target.hpp"
#include "kernel-manager/environments/requirements.hpp"
#include "kernel-manager/execution/artifacts/artifact_tracker.hpp"
#include "sandbox/policy/policy.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::session {

namespace {

constexpr std::string_view kPlainScheme = "http://";

}  // namespace

Result<PackageIndex> parse_package_index(std::string_view url) {
    BOOST_OUTCOME_TRY(environments::check_index(url));
    if (url.empty() || url.find_first_of("@?") != std::string_view::npos) {
        return Error(
            ErrorCode::kInvalidArgument,
            "the index is no address that sessions may see: it is empty, or has a user or a query",
            "Code in sessions sees the address.");
    }
    PackageIndex index;
    index.url = url;
    index.plain = url.starts_with(kPlainScheme);
    const std::size_t host = url.find("://") + 3;
    const std::string_view authority = url.substr(host, url.find('/', host) - host);
    BOOST_OUTCOME_TRY(
        const egress::Authority place,
        egress::parse_authority(authority, index.plain ? egress::kHttpPort : egress::kHttpsPort));
    index.host = {place.host.text, place.port, false};
    return index;
}

std::string packages_inside() {
    return std::string(sandbox::kWorkspacePath) + "/" + std::string(kPackagesDirectory);
}

std::vector<std::string> package_variables(const PackageIndex& index) {
    const std::string root = packages_inside();
    std::vector<std::string> variables = {
        "CELLKEEP_PACKAGES=" + root,
        "PIP_INDEX_URL=" + index.url,
        "PIP_ONLY_BINARY=:all:",
        "PIP_PYTHON=" + root + "/bin/python",
        "PIP_CONSTRAINT=" + root + "/constraints.txt",
        // A cache would count as the session's files, and no later session could use it.
        "PIP_NO_CACHE_DIR=1",
        "PIP_NO_INPUT=1"};
    if (index.plain) {
        variables.push_back("PIP_TRUSTED_HOST=" + to_string(index.host));
    }
    return variables;
}

void add_package_programs(std::vector<std::string>& variables) {
    constexpr std::string_view kPath = "PATH=";
    for (std::string& variable : variables) {
        if (variable.starts_with(kPath)) {
            variable.insert(kPath.size(), packages_inside() + "/bin:");
        }
    }
}

}  // namespace cellkeep::session
