// SPDX-License-Identifier: Apache-2.0
#include "sandbox/shared/setup_step.hpp"

#include <array>
#include <cstddef>

namespace cellkeep::sandbox {

namespace {

struct StepText {
    SetupStep step;
    const char* name;
    const char* control;
};

constexpr std::array<StepText, static_cast<std::size_t>(SetupStep::kCount)> kSteps{{
    {SetupStep::kReadPlan, "read the plan", ""},
    {SetupStep::kDropGroups, "drop supplementary groups", "user_namespace"},
    {SetupStep::kCloneReadOnlyPath, "open read-only path", "root_filesystem"},
    {SetupStep::kLayReadOnlyPath, "lay a directory over read-only path", "root_filesystem"},
    {SetupStep::kOpenInput, "open input", ""},
    {SetupStep::kCloneDevice, "open device", "root_filesystem"},
    {SetupStep::kOpenRoom, "make room for a branch's namespaces", ""},
    {SetupStep::kEnterParent, "enter the parent's sandbox", ""},
    {SetupStep::kMakeNetwork, "make a network namespace", "network_namespace"},
    {SetupStep::kEnterNetwork, "enter the network namespace", "network_namespace"},
    {SetupStep::kCreateNamespaces, "create namespaces", "user_namespace"},
    {SetupStep::kMapUser, "write the user and group maps", "user_namespace"},
    {SetupStep::kJoinCgroup, "place the session in its cgroup", ""},
    {SetupStep::kOpenWorkerCgroup, "open the workers' cgroup", ""},
    {SetupStep::kWaitForLauncher, "wait for the launcher", ""},
    {SetupStep::kBecomeGuest, "become the session's user", "user_namespace"},
    {SetupStep::kCgroupNamespace, "create a cgroup namespace", "cgroup_namespace"},
    {SetupStep::kPrivateMounts, "make mounts private", "mount_namespace"},
    {SetupStep::kMountRoot, "mount the root", "root_filesystem"},
    {SetupStep::kMountTmpfs, "mount private directory", "root_filesystem"},
    {SetupStep::kMountReadOnlyPath, "mount read-only path", "root_filesystem"},
    {SetupStep::kMountInput, "mount input", "root_filesystem"},
    {SetupStep::kMountDevices, "mount /dev", "root_filesystem"},
    {SetupStep::kMakeLink, "make link", "root_filesystem"},
    {SetupStep::kWriteFile, "write file", "root_filesystem"},
    {SetupStep::kMountProc, "mount /proc", "proc"},
    {SetupStep::kPivotRoot, "pivot_root", "root_filesystem"},
    {SetupStep::kSealRoot, "make the root read-only", "root_filesystem"},
    {SetupStep::kLoopback, "bring up loopback", "network_namespace"},
    {SetupStep::kSocketMemory, "bound the memory of sockets", "network_namespace"},
    {SetupStep::kProxyListener, "listen for the proxy", "network_namespace"},
    {SetupStep::kHostname, "set the host name", "uts_namespace"},
    {SetupStep::kTellNamespaces, "tell of the branch's namespaces", ""},
    {SetupStep::kDisableUserNamespaces, "disable nested user namespaces", "nested_user_namespaces"},
    {SetupStep::kZygotePids, "choose the zygote's process ids", ""},
    {SetupStep::kSessionKeyring, "join a new session keyring", "session_keyring"},
    {SetupStep::kNewSession, "start a new process session", ""},
    {SetupStep::kDescriptors, "arrange descriptors", ""},
    {SetupStep::kRlimits, "set resource limits", "rlimits"},
    {SetupStep::kDropCapabilities, "drop capabilities", "capabilities"},
    {SetupStep::kKeepCapabilities, "keep the zygote's capabilities", ""},
    {SetupStep::kNoNewPrivileges, "set no_new_privs", "no_new_privileges"},
    {SetupStep::kParentDeathSignal, "set the parent death signal", "kill"},
    {SetupStep::kLandlock, "apply Landlock", "landlock"},
    {SetupStep::kSeccomp, "install the seccomp filter", "seccomp"},
    {SetupStep::kDenialReports, "ask for reports of refused system calls", "denial_reports"},
    {SetupStep::kServe, "serve requests", ""},
    {SetupStep::kDecodeStart, "decode the start request", ""},
    {SetupStep::kFork, "fork the worker", ""},
    {SetupStep::kWorkerCgroup, "place the worker in its cgroup", ""},
    {SetupStep::kWorkerSession, "start the worker's process session", ""},
    {SetupStep::kWorkerDescriptors, "arrange the worker's descriptors", ""},
    {SetupStep::kWorkerLimits, "limit the worker's open files", "rlimits"},
    {SetupStep::kWorkerDirectory, "enter the working directory", ""},
    {SetupStep::kExec, "exec", ""},
    {SetupStep::kAdopt, "adopt the fork", ""},
}};

constexpr bool in_order() {
    for (std::size_t i = 0; i < kSteps.size(); ++i) {
        if (static_cast<std::size_t>(kSteps[i].step) != i) {
            return false;
        }
    }
    return true;
}
static_assert(in_order(), "kSteps lists every SetupStep in the order of the enum");

}  // namespace

const char* step_name(SetupStep step) {
    const auto index = static_cast<std::size_t>(step);
    return index < kSteps.size() ? kSteps[index].name : "unknown step";
}

const char* step_control(SetupStep step) {
    const auto index = static_cast<std::size_t>(step);
    return index < kSteps.size() ? kSteps[index].control : "";
}

}  // namespace cellkeep::sandbox
