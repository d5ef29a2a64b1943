// SPDX-License-Identifier: Apache-2.0
//
// The steps that make a sandbox and a worker, each with the name that errors show. Used on both
// sides of the exec: no allocation here.
#pragma once

#include <cstdint>

namespace cellkeep::sandbox {

enum class SetupStep : std::uint32_t {
    kReadPlan,
    kDropGroups,
    kCloneReadOnlyPath,
    kLayReadOnlyPath,
    kOpenInput,
    kCloneDevice,
    kOpenRoom,
    kEnterParent,
    kMakeNetwork,
    kEnterNetwork,
    kCreateNamespaces,
    kMapUser,
    kJoinCgroup,
    kOpenWorkerCgroup,
    kWaitForLauncher,
    kBecomeGuest,
    kCgroupNamespace,
    kPrivateMounts,
    kMountRoot,
    kMountTmpfs,
    kMountReadOnlyPath,
    kMountInput,
    kMountDevices,
    kMakeLink,
    kWriteFile,
    kMountProc,
    kPivotRoot,
    kSealRoot,
    kLoopback,
    kSocketMemory,
    kProxyListener,
    kHostname,
    kTellNamespaces,
    kDisableUserNamespaces,
    kZygotePids,
    kSessionKeyring,
    kNewSession,
    kDescriptors,
    kRlimits,
    kDropCapabilities,
    kKeepCapabilities,
    kNoNewPrivileges,
    kParentDeathSignal,
    kLandlock,
    kSeccomp,
    kDenialReports,
    kServe,
    kDecodeStart,
    kFork,
    kWorkerCgroup,
    kWorkerSession,
    kWorkerDescriptors,
    kWorkerLimits,
    kWorkerDirectory,
    kExec,
    kAdopt,
    kCount,
};

/// What the step does, as the start of a sentence: "mount /proc". Static storage.
const char* step_name(SetupStep step);

/// The control (sandbox/policy/isolation.hpp) that is missing if the step fails, or "" if none.
const char* step_control(SetupStep step);

}  // namespace cellkeep::sandbox
