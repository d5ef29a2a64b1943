// SPDX-License-Identifier: Apache-2.0
//
// What the server, the launcher and pid 1 say to one another: fixed, trivially copyable structs,
// one per SOCK_SEQPACKET message, all built from one source tree, so there is no version to
// negotiate. Two sockets: control (requests and their replies, also the messages of setup) and
// events (worker exits, one way; its end of file means that pid 1 is gone). No guest process ever
// holds either.
#pragma once

#include "sandbox/shared/loopback.hpp"
#include "sandbox/shared/setup_step.hpp"
#include "sandbox/shared/worker_group.hpp"

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace cellkeep::sandbox {

/// The descriptors the launcher finds when it starts.
inline constexpr int kLauncherControlFd = 3;
inline constexpr int kLauncherEventsFd = 4;
inline constexpr int kLauncherPlanFd = 5;
inline constexpr int kLauncherNetworkFd = 6;  // a network namespace, if plan.enter_network

/// In a fork of a zygote or of a launcher of branches, from here: an open cgroup.procs file for
/// each of plan.cgroup_procs, then that of plan.worker_procs, if it has one. Of a branch, then the
/// host's /proc.
inline constexpr int kLauncherCgroupFd = 7;
/// The cgroup.procs files of a plan and its worker's: one per hierarchy of cgroup v1 that is used.
inline constexpr std::size_t kCgroupFilesMax = 9;

/// The argument that makes the launcher one of branches: of the sandboxes inside another one, their
/// parent. It has the control socket and then three namespaces of the parent's, the last one that
/// of its guests. It answers with kRoom, then kReady (or kFailed). Then it takes LaunchRequests,
/// until the socket's end of file.
inline constexpr const char* kMakeBranches = "branches";
inline constexpr int kParentMountFd = 4;
inline constexpr int kParentPidFd = 5;
inline constexpr int kParentUserFd = 6;

/// The argument that makes the launcher make a network namespace instead of a sandbox. It then has
/// the control socket only, answers kNetwork and kListener (or kFailed), and ends.
inline constexpr const char* kMakeNetwork = "network";

/// The controls that code inside applies, in the order of the isolation report.
enum class ChildControl : std::uint32_t {
    kUserNamespace,
    kNestedUserNamespaces,
    kPidNamespace,
    kMountNamespace,
    kNetworkNamespace,
    kIpcNamespace,
    kUtsNamespace,
    kCgroupNamespace,
    kRootFilesystem,
    kProc,
    kCapabilities,
    kNoNewPrivileges,
    kLandlock,
    kSeccomp,
    kDenialReports,
    kSessionKeyring,
    kRlimits,
    kCount,
};
inline constexpr std::size_t kChildControlCount = static_cast<std::size_t>(ChildControl::kCount);

constexpr std::uint32_t control_bit(ChildControl control) {
    return 1U << static_cast<std::uint32_t>(control);
}

inline constexpr std::int32_t kControlNotReached = -1;

/// Filled in by the code that applies each control: 0 applied, an errno if it failed and was
/// waived.
struct ChildReport {
    std::array<std::int32_t, kChildControlCount> outcome{};
    std::int32_t landlock_abi = 0;
    std::int32_t socket_bounds = 0;  // of a network made here: the errno of one that is missing
};

enum class SetupMessageKind : std::uint32_t {
    kLaunched,  // from the launcher, with pid 1's pidfd
    kFailed,    // from either: step, error, index
    kReady,    // from pid 1, locked down, with the workspace's O_PATH descriptor; see kMakeBranches
    kNetwork,  // from a launcher asked to kMakeNetwork, with the namespace's descriptor
    kListener,    // the socket at kProxyPort: from there, or from a pid 1 that made its own network
    kNamespaces,  // of a branch, from its pid 1: all of kBranchNamespaces, in their order
    kRoom         // from a launcher of branches: the socket of the process that makes room
};

struct SetupMessage {
    SetupMessageKind kind = SetupMessageKind::kFailed;
    SetupStep step = SetupStep::kReadPlan;  // kFailed
    std::int32_t error = 0;                 // kFailed: an errno; kNetwork: of a bound, or 0
    std::uint32_t index = 0;                // kFailed: which path, link or file of the plan
    ChildReport report;                     // kFailed, kReady
};

/// kKillAll gets its answer, and kSweep an event, when only pid 1 is left. Until then the answer to
/// kStart is EBUSY. kSweepGroup is kSweep of one group of workers and keeps only that group from
/// starting. Its one descriptor, if it comes with one, is the cgroup.events file of the group's
/// cgroup, for reading. If no other process is inside, the answer to kStart comes when the worker
/// has become its program or failed to. Otherwise it comes as soon as the worker is forked, because
/// the others could stop it, and the event of its end has the failure. kAdopt makes a worker of a
/// child of pid 1 that a worker has forked (CLONE_PARENT); its one descriptor, if own_cgroup says
/// so, is the cgroup.procs file that the process is moved to instead of the plan's. kSignal
/// sends a signal to the process group of a worker that lives. It has no answer, and can reach
/// nothing outside of pid 1's own pid namespace. kLetPass has no answer either: of the calls that
/// the filter hands to pid 1, `setns` of the process `forked` go through, `passes` times. 0:
/// none any more. kConnect begins a TCP connection to a loopback address and a port of the
/// session's network. Its one descriptor is an end of a socket pair, through which pid 1 answers
/// with a ConnectAnswer and, if its error is 0, the socket. kDeathSignal says which signal pid 1
/// gets when the thread ends that made it: 0 while another program takes the server's place, and
/// kills all threads for that; SIGKILL otherwise. It has an answer.
enum class RequestKind : std::uint32_t {
    kStart,
    kKillAll,
    kSweep,
    kSweepGroup,
    kAdopt,
    kSignal,
    kLetPass,
    kConnect,
    kDeathSignal
};

/// Followed, for kStart, by text_bytes of NUL-terminated strings: the working directory,
/// argument_count arguments, environment_count variables. Carries kStartFdsMin to kStartFdsMax
/// descriptors: stdout, stderr, the link; or, if own_input says so, stdin, stdout, stderr; or, if
/// own_terminal says so, a terminal alone, which is all three and controls the worker. After them,
/// if own_cgroup says so, comes the cgroup.procs file that the worker enters instead of the plan's,
/// for writing.
struct RequestHeader {
    RequestKind kind = RequestKind::kStart;
    std::uint32_t sequence = 0;
    std::uint32_t worker_id = 0;
    std::uint32_t argument_count = 0;
    std::uint32_t environment_count = 0;
    std::uint32_t text_bytes = 0;
    std::uint32_t warm = 0;             // 1: no exec, the worker goes on as the zygote's program
    std::uint32_t group = 0;            // kStart, kSweepGroup, kAdopt: below kWorkerGroupsMax
    std::uint32_t own_cgroup = 0;       // 1: the last descriptor is its cgroup's; or kStaysInCgroup
    std::int32_t forked = 0;            // kAdopt: the process's number inside
    std::uint32_t own_input = 0;        // kStart: 1: the first descriptor is the worker's stdin
    std::int32_t signal = 0;            // kSignal: 1 to kSignalMax; kDeathSignal: 0 or SIGKILL
    std::uint32_t own_terminal = 0;     // kStart: 1: the one descriptor is the worker's terminal
    std::uint32_t passes = 0;           // kLetPass: how often
    std::uint32_t port = 0;             // kConnect: 1 to 65535, and not kProxyPort
    Loopback loopback = Loopback::kV4;  // kConnect
};
inline constexpr std::int32_t kSignalMax = 64;
/// kAdopt: the process is moved to no cgroup. The server looks where it is.
inline constexpr std::uint32_t kStaysInCgroup = 2;

/// From the server to a zygote or a launcher of branches, with the descriptors that its fork finds
/// as the launcher does: control, events, plan, then those of the cgroups. There is no reply: a
/// process that fails reports it through the control socket that came with it.
struct LaunchRequest {
    std::uint32_t cgroup_files = 0;
};
inline constexpr std::size_t kLaunchFdsMin = 3;
inline constexpr std::size_t kLaunchFdsMax = kLaunchFdsMin + kCgroupFilesMax;

/// From the server to the process that makes room for the namespaces of branches: it opens the
/// bounds on user namespaces that the parent is under, or puts them back, which it also does at the
/// socket's end of file. Its answer is an errno (std::int32_t), or 0.
enum class RoomOrder : char { kOpen = 'o', kClose = 'c' };

/// From a zygote to the server, once: it takes requests from now on.
struct ZygoteReady {
    std::uint32_t threads = 0;          // of its process: 1, or nothing may be forked from it
    std::uint32_t open_files = 0;       // besides 0 to 2 and its socket: 0, or its forks share them
    std::uint32_t shared_mappings = 0;  // that can be written to: 0, for the same reason
    std::uint64_t data_bytes = 0;       // that count against RLIMIT_DATA in every fork of it
};

inline constexpr std::size_t kStartFdsMin = 2;
inline constexpr std::size_t kStartFdsMax = 3;
/// Of any request: a worker's and its cgroup's.
inline constexpr std::size_t kRequestFdsMax = kStartFdsMax + 1;
inline constexpr std::size_t kStartStringsMax = 512;
inline constexpr std::size_t kStartTextBytesMax = 96UL * 1024;
inline constexpr std::size_t kRequestBytesMax = sizeof(RequestHeader) + kStartTextBytesMax;

/// How many workers one sandbox runs at once.
inline constexpr std::size_t kWorkersMax = 64;

struct ReplyMessage {
    std::uint32_t sequence = 0;
    std::int32_t error = 0;              // 0: done; a started worker comes with its pidfd
    SetupStep step = SetupStep::kServe;  // where it failed
    std::int32_t pid = 0;                // of a worker that was started: its number inside
};

/// To kConnect.
struct ConnectAnswer {
    std::int32_t error = 0;  // an errno; 0: the socket comes with it, connected or about to be
};

enum class EventKind : std::uint32_t { kExited, kDenied, kSwept, kGroupSwept };

struct EventMessage {
    EventKind kind = EventKind::kExited;
    std::uint32_t worker_id = 0;    // kExited
    std::uint32_t group = 0;        // kGroupSwept
    std::int32_t wait_status = 0;   // kExited: as in waitpid(2)
    std::uint32_t system_call = 0;  // kDenied: its number
    std::uint64_t count = 0;        // kDenied: how often since the last message about it
    /// kExited of one that never became its program: where and why. 0: it did, or was killed
    /// before.
    SetupStep failed_step = SetupStep::kServe;
    std::int32_t failed_error = 0;
};

/// Pid 1 tells the server of a denial at once as long as it has one of kDenialReportsBurst tokens,
/// which come back one per kDenialReportPeriodMs; without one it adds up and tells later.
inline constexpr std::uint32_t kDenialReportsBurst = 32;
inline constexpr std::int64_t kDenialReportPeriodMs = 100;

/// Through the close-on-exec pipe of a worker that could not be made into its program.
struct WorkerFailure {
    SetupStep step = SetupStep::kExec;
    std::int32_t error = 0;
};

static_assert(std::is_trivially_copyable_v<SetupMessage>);
static_assert(std::is_trivially_copyable_v<RequestHeader>);
static_assert(std::is_trivially_copyable_v<ReplyMessage>);
static_assert(std::is_trivially_copyable_v<ConnectAnswer>);
static_assert(std::is_trivially_copyable_v<EventMessage>);
static_assert(std::is_trivially_copyable_v<WorkerFailure>);
static_assert(std::is_trivially_copyable_v<LaunchRequest>);
static_assert(std::is_trivially_copyable_v<ZygoteReady>);

}  // namespace cellkeep::sandbox
