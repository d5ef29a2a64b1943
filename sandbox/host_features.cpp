// SPDX-License-Identifier: Apache-2.0
#include "sandbox/host_features.hpp"

#include "sandbox/server/assembly.hpp"

#include <sys/utsname.h>

#include <utility>

namespace cellkeep::sandbox {

namespace {

/// Any ids but root's: the probe's sandbox runs nothing.
constexpr uid_t kProbeUid = 65534;

}  // namespace

HostFeatures probe_host(
    const std::vector<PrivateImage>& images, const std::vector<ReadOnlyPath>& read_only) {
    HostFeatures features;
    features.mode = run_mode();
    utsname name{};
    features.kernel_release = ::uname(&name) == 0 ? name.release : "unknown";
    const auto layout = read_cgroup_layout();
    features.cgroup_layout = layout.has_value() ? layout.value().name() : "none";
    Policy policy;
    policy.host_uid = kProbeUid;
    policy.host_gid = kProbeUid;
    policy.images = images;
    policy.read_only = read_only;
    IsolationReport reached;
    // A real sandbox, with everything waived that may be: what it got is what a session gets.
    auto assembled = assemble(policy, MissingControl::kReport, &reached);
    if (assembled.has_value()) {
        features.landlock_abi = assembled.value().pid1.report.landlock_abi;
        reached = std::move(assembled.value().isolation);
        // Ignored: nothing ran in it, and the cgroup's destructor tries again.
        (void)kill_and_reap(assembled.value().pid1.pidfd, kLaunchPatience).has_value();
        (void)assembled.value().cgroup.destroy(std::chrono::seconds(1)).has_value();
    } else if (reached.controls.empty()) {
        for (const std::string& control : control_names()) {
            const Error& error = assembled.error();
            reached.controls.push_back(
                {control, ControlState::kAbsent, "", error.message(), error.hint()});
        }
    }
    features.controls = std::move(reached.controls);
    return features;
}

}  // namespace cellkeep::sandbox
