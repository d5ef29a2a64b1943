// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/service_setup.hpp"

#include "kernel-manager/session/kernel_catalog.hpp"
#include "sandbox/sandbox.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace cellkeep::cli {

namespace {

/// sandbox/isolation.hpp lists them.
constexpr std::array<std::string_view, 22> kControls = {
    "user_namespace",
    "nested_user_namespaces",
    "pid_namespace",
    "mount_namespace",
    "network_namespace",
    "ipc_namespace",
    "uts_namespace",
    "cgroup_namespace",
    "root_filesystem",
    "proc",
    "capabilities",
    "no_new_privileges",
    "landlock",
    "seccomp",
    "session_keyring",
    "rlimits",
    "memory_limit",
    "process_limit",
    "cpu_limit",
    "cpu_accounting",
    "freeze",
    "kill"};

}  // namespace

Result<session::ServiceConfig> make_service_config(
    std::size_t sessions_max, const std::vector<std::string>& allow_degraded) {
    session::ServiceConfig config;
    config.sessions_max = sessions_max;
    for (const std::string& name : allow_degraded) {
        if (std::find(kControls.begin(), kControls.end(), name) == kControls.end()) {
            return Error(
                ErrorCode::kInvalidArgument,
                "--allow-degraded: there is no control \"" + name + "\"",
                "\"cellkeep doctor\" lists them.");
        }
        config.allow_degraded.insert(name);
    }
    BOOST_OUTCOME_TRY(const auto installation, session::find_installation());
    BOOST_OUTCOME_TRY(config.catalog, session::KernelCatalog::create(installation));
    // Ignored: leftovers of a dead server cost memory, not correctness.
    (void)sandbox::sweep_leftovers();
    return config;
}

}  // namespace cellkeep::cli
