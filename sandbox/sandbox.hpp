// SPDX-License-Identifier: Apache-2.0
//
// A sandbox: one set of namespaces, a private root, a cgroup, and a pid 1 of ours that starts and
// reaps the processes of the session. It outlives the interpreters it runs: a restarted kernel gets
// a new process in the same sandbox, with the same files.
//
// Owns: the pid 1 process (killed and reaped by the destructor, and with it everything inside), the
// cgroup (removed), the control socket to pid 1. Never: reads a byte that the guest wrote. The
// control socket belongs to pid 1, which is undumpable and which the guest cannot signal or trace.
// Not thread-safe: one thread owns a Sandbox. create() blocks for some milliseconds, and start()
// until pid 1 has answered; begin_start() does not block.
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"
#include "sandbox/cgroup/halted_leaf.hpp"
#include "sandbox/policy/isolation.hpp"
#include "sandbox/policy/limits_change.hpp"
#include "sandbox/policy/policy.hpp"
#include "sandbox/server/branch_launcher.hpp"
#include "sandbox/server/passed_sandbox.hpp"
#include "sandbox/shared/loopback.hpp"
#include "sandbox/shared/worker_group.hpp"

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::sandbox {

/// Identifies a process started by Sandbox::start, unique within its sandbox.
using WorkerId = std::uint32_t;

/// A program to run inside. Its descriptor 0 is stdin_fd or else /dev/null, 1 and 2 are stdout_fd
/// and stderr_fd, and 3 is link_fd (if valid); every other descriptor is closed. The input is a
/// pipe, outputs are pipes or /dev/null, the link is one end of a connected pair of Unix sockets:
/// nothing else crosses the wall. One with an input has no link and is not warm. Instead of all
/// these it may have a terminal, which is then its descriptors 0 to 2 and controls it.
struct WorkerSpec {
    std::vector<std::string> argv;  // argv[0] is an absolute path inside the sandbox
    std::vector<std::string> env;   // "NAME=value"; this is the whole environment
    std::string working_directory = kWorkspacePath;
    UniqueFd stdin_fd = {};
    UniqueFd stdout_fd;
    UniqueFd stderr_fd;
    UniqueFd link_fd;
    UniqueFd terminal_fd = {};  // a process's side of a pseudo-terminal
    /// The zygote's program goes on instead of an exec of argv, which is only checked as ever; the
    /// sandbox must have been made by one (is_warm()).
    bool warm = false;
    WorkerGroup group = 0;
    /// Not 0: nothing is started. The process with this number inside, which a worker has forked
    /// as a child of pid 1 (CLONE_PARENT), becomes a worker of the group. The guest may name any
    /// number: only a live child of pid 1 that is no worker yet is taken. All else but the group
    /// must be as it is here.
    pid_t forked = 0;
    /// Of such a process: the group of the one that forked it, in whose cgroup it was born. Then it
    /// is not moved, which takes the kernel some milliseconds. One for kSleepingGroup stays in that
    /// cgroup until the owner has moved it (sleepers_file()). For one that sleepers have forked and
    /// that is of another group, the cgroups of the two groups change their places unless
    /// give_way() has done that, and all sleepers are to be moved. One that was born elsewhere is
    /// killed.
    std::optional<WorkerGroup> born_in = {};
};
inline constexpr int kWorkerLinkFd = 3;

struct Worker {
    WorkerId id = 0;
    UniqueFd pidfd;    // for pidfd_send_signal(2); the host's pid never leaves the sandbox library
    pid_t inside = 0;  // its number inside, to show; 0: of one that was adopted
};

/// How a worker, or the whole sandbox, ended.
struct WorkerExit {
    WorkerId id = 0;
    bool signaled = false;  // true: status is a signal number; false: an exit code
    int status = 0;
    /// Why it never became its program, where start() could not say so. Empty: it did.
    std::string failure;
};

/// A system call that the filter refused with EPERM, and how often since the last report of it.
/// Only calls that no program makes by accident are reported (SECURITY.md, section 7): namespaces,
/// mounts, tracing, kernel programs, keys, rings, modules, clocks, foreign sockets. The report does
/// not say which process made the call.
struct Denial {
    std::string system_call;  // "unshare", "ptrace", "socket" …
    std::uint64_t count = 0;
};

struct SandboxEvent {
    /// kSwept: nothing is left of what begin_sweep() has killed, and every exit has been reported.
    /// kGroupSwept: the same of one group; without a cgroup only its workers are known to be gone.
    enum class Kind {
        kWorkerExited,
        kSandboxDied,
        kDenied,
        kSwept,
        kGroupSwept
    } kind = Kind::kWorkerExited;
    WorkerExit worker;  // for kWorkerExited
    /// For kDenied. Pid 1 queues it before the call returns inside, so it can be read before
    /// anything that the guest says after its EPERM arrives. Only if more than
    /// kDenialReportsBurst calls are refused at once (sandbox/shared/messages.hpp), the rest is
    /// reported late and summed up.
    Denial denial;
    WorkerGroup group = 0;  // for kGroupSwept
};

/// How long pid 1 may take to answer a start. Longer than it waits for the exec
/// (init_start.cpp). As kLaunchPatience.
inline constexpr std::chrono::seconds kStartPatience{30};
inline constexpr std::chrono::milliseconds kDestroyPatience{1000};
inline constexpr std::chrono::milliseconds kFreezePatience{1000};

/// Counters since the sandbox was made. A counter whose control is absent stays 0.
struct Usage {
    std::chrono::microseconds cpu_time{0};
    bool cpu_lost = false;  // its counter is there and cannot be read: cpu_time is 0
    std::uint64_t memory_bytes = 0;
    std::uint64_t memory_peak_bytes = 0;
    std::uint64_t oom_kills = 0;
    std::uint64_t processes = 0;
    std::uint64_t process_refusals = 0;  // forks refused by the process limit (pids.events)
    /// How often the memory limit was reached, where the kernel counts it (memory.events; recent v1
    /// kernels count nothing). Mostly the kernel then only takes cached pages back: a refusal
    /// shows in oom_kills or as an errno inside.
    std::uint64_t memory_refusals = 0;
};

class Zygote;
struct SandboxState;

class Sandbox {
 public:
    /// Makes the namespaces, the root and the cgroup and starts pid 1, fully locked down. Fails
    /// closed: kUnavailable, naming the control and the fix, if a control cannot be applied and
    /// policy.allow_degraded does not list it; kSystem, naming the step, if a step fails.
    /// Call it on a thread that lives as long as the server (the main thread): the kernel takes pid
    /// 1 away when the thread that made it ends (PR_SET_PDEATHSIG, prctl(2)). The server must not
    /// reap children that are not its own business with waitpid(-1), and SIGCHLD may be ignored or
    /// not.
    static Result<Sandbox> create(const Policy& policy);
    /// The same by a fork of the zygote, in which a worker can be warm. The thread does not matter:
    /// pid 1 is a child of the zygote's own pid 1. kInvalidArgument if the zygote does not cover
    /// the policy (Zygote::covers).
    static Result<Sandbox> create(const Policy& policy, std::shared_ptr<Zygote> zygote);

    /// A branch: the same inside another sandbox, the launcher's parent, whose root it has, with a
    /// user namespace, pids, files, a network and limits of its own. It ends with the other one,
    /// whose processes see its processes, and not the other way round. host_uid, read_only and
    /// inputs of the policy must be the other's.
    static Result<Sandbox> create(const Policy& policy, BranchLauncher& launcher);

    Sandbox(Sandbox&& other) noexcept;
    Sandbox& operator=(Sandbox&& other) noexcept;
    Sandbox(const Sandbox&) = delete;
    Sandbox& operator=(const Sandbox&) = delete;
    /// destroy() without its result: call destroy() to learn of a failure.
    ~Sandbox();

    /// begin_start() and take_start() for a caller on a thread of its own: waits for pid 1's
    /// answer. kTimeout after kStartPatience, with give_up().
    Result<Worker> start(WorkerSpec spec);
    /// Asks pid 1 to fork a worker and to exec it, and returns the worker's id. Waits for nothing:
    /// take_start() returns the answer, answer_fd() says when. One start at a time: kConflict until
    /// the last one has its answer. At most 64 workers live at once. argv and
    /// env have at most 512 entries each and 96 KiB together (kLimitExceeded beyond;
    /// sandbox/shared/messages.hpp). kUnavailable if pid 1 does not even take the request.
    Result<WorkerId> begin_start(WorkerSpec spec);
    /// Makes the session's user the owner of two pipes, for a process that begin_start() does not
    /// hand them to.
    Status give_outputs(const UniqueFd& stdout_fd, const UniqueFd& stderr_fd) const;
    /// Readable when take_start() has something. Level-triggered; valid until destroy().
    int answer_fd() const;
    /// The answer to begin_start(); nullopt if pid 1 has not answered. Never blocks. An error also
    /// ends the start: there is no worker. It names the step of an exec that failed, if no other
    /// process is inside; otherwise the worker's exit does, because the others could stop it and
    /// pid 1 waits for none of them. kUnavailable while something that was killed has not ended,
    /// and if the sandbox is dead.
    Result<std::optional<Worker>> take_start();
    /// For a pid 1 that does not answer in time: kills it with everything inside, so that no worker
    /// comes later. kSandboxDied follows; nothing can be started any more.
    void give_up();

    /// It was made by a zygote: by this one.
    bool is_warm() const;
    std::shared_ptr<Zygote> zygote() const;

    /// Readable when next_event() has something. Level-triggered; valid until destroy().
    int event_fd() const;
    /// The next event, or nothing. Never blocks. After kSandboxDied there are no more events, nor
    /// after an error: the sandbox is to be destroyed then.
    Result<std::optional<SandboxEvent>> next_event();
    /// Why next_event() told of an end, for the log. After destroy() also how pid 1 ended, where
    /// Linux tells. Empty: it told of none.
    const std::string& unexpected_end() const;

    /// SIGKILL to every worker and all their descendants, keeping pid 1 (used before a restart),
    /// and returns: some may take seconds to die (of a process with many mappings, say, the kernel
    /// takes those down first). kSwept tells of the end; until then start() fails. kUnavailable if
    /// pid 1 does not take the request. May be called again at any time.
    Status begin_sweep();
    /// The same of one group, kGroupSwept tells of the end, and only that group's start() fails
    /// until then. The others go on. Of a group in whose cgroup are sleepers it begins with
    /// sleepers_moved().
    Status begin_sweep(WorkerGroup group);
    /// Begins the end of all that is in a group's cgroup. Pid 1 reports the exits of the workers;
    /// no kGroupSwept follows. Nothing of the group may be started before give_way(). kUnavailable
    /// without a cgroup, and while sleepers are in it.
    Result<HaltedLeaf> halt(WorkerGroup group);
    /// When all stand still: the cgroups of the group and of the sleepers change their places, so
    /// that nothing that is started or adopted from now on is among those that end. All sleepers
    /// are to be moved. kUnavailable if one of the cgroups is not there.
    Status give_way(WorkerGroup group);
    /// Sleepers are in the cgroup of another group, and are to be moved (move_to_cgroups() in
    /// branch_place.hpp) to the file that sleepers_file() names, or to be killed. Until
    /// sleepers_moved(), what they fork is born in the wrong one.
    bool has_stray_sleepers() const;
    std::string sleepers_file();
    Status sleepers_moved();
    /// A signal (1 to 64) to a worker and what is in its process group. Nothing happens if the
    /// worker has ended. kUnavailable if pid 1 does not take the request, kInvalidArgument.
    Status signal(WorkerId worker, int number);
    /// begin_sweep() and a wait: returns when only pid 1 is left. kTimeout after the patience;
    /// kConflict while a start is under way.
    Status kill_workers(std::chrono::milliseconds patience);

    // --- its way to another program in the server's process (sandbox_branches.cpp)
    /// One that another program has left. zygote: which made it; null if none did.
    static Sandbox take_over(PassedSandbox passed, std::shared_ptr<Zygote> zygote = nullptr);
    /// Everything that this object has, and nothing is killed: for its owner it is destroyed. Who
    /// takes a frozen one over freezes it again. The namespaces() of a branch do not pass: they are
    /// for the branch's first interpreter, which is there. Precondition: no start under way.
    PassedSandbox pass_on();
    /// Whether pid 1 gets a SIGKILL when the thread that made it ends. Without it only the end of
    /// the control socket ends pid 1. Waits for nothing: pass what this returns to
    /// wait_for_death_signal(). kUnavailable if pid 1 does not take the request.
    Result<std::uint32_t> ask_for_death_signal(bool wanted);
    /// kTimeout: pid 1 has not answered.
    Status wait_for_death_signal(std::uint32_t asked, std::chrono::milliseconds patience);

    // --- branches (SECURITY.md, section 17)
    /// Of a branch: what a process of its parent enters, in the order of kBranchNamespaces.
    const std::vector<UniqueFd>& namespaces() const;
    /// The cgroup.procs files that such a process is moved to before it is adopted here.
    std::vector<std::string> cgroup_files() const;
    /// A process of this sandbox or of a branch of it, by its number here, leaves: so many of the
    /// calls that take it away pass the filter. 0: none any more. kUnavailable as for signal().
    Status let_pass(pid_t inside, std::uint32_t calls);
    /// Kills all that its cgroups show but pid 1, on which branches depend, and nothing of theirs.
    /// Then it is good for let_pass() and destroy() only; the first may be called meanwhile, on
    /// another thread. Blocks for about a second at most; kTimeout if something does not end.
    Status retire();

    /// The socket that listens at 127.0.0.1:kProxyPort inside: non-blocking, close-on-exec, the
    /// caller's from now on. Invalid for NetworkMode::kNone and the second time. What it accepts
    /// are sockets of the session's network namespace; no socket of the host's ever goes in.
    /// stop_listening() (sandbox/server/network_pool.hpp) takes the way out away for good: nothing
    /// can listen there for the server again.
    UniqueFd take_proxy_listener();

    /// Asks pid 1 for a TCP connection to this address and port of the session's own network;
    /// nothing else can be reached so. Returns the socket on which take_connection()
    /// (sandbox/server/loopback_connection.hpp) finds the answer as soon as it is readable. Waits
    /// for nothing. kConflict: the sandbox is frozen or destroyed; kUnavailable: pid 1 does not
    /// even take the request.
    Result<UniqueFd> begin_connection(std::uint16_t port, Loopback address = Loopback::kV4);

    /// Nothing inside runs until thaw(), kill_workers(), begin_sweep() or destroy(); start() is
    /// refused. kUnavailable without a cgroup to do it with; kTimeout: it is in force as soon as it
    /// comes, and thaw() takes it back.
    Status freeze(std::chrono::milliseconds patience = kFreezePatience);
    Status thaw();
    /// freeze() was called, and nothing has thawed it since.
    bool is_frozen() const;
    /// Whether all that is inside waits for something from outside: every thread is in a wait
    /// without a time limit (sandbox/server/idle_probe.hpp). An error if the host does not show it
    /// or gives no cgroup to freeze.
    Result<bool> is_waiting() const;

    Result<Usage> usage() const;
    /// The part of usage() that is asked at every cell: cpu_time, oom_kills and process_refusals;
    /// the rest is 0. Costs a fraction of it.
    Result<Usage> counters() const;
    /// Of counters(), cpu_time and cpu_lost alone; the rest is 0. One system call.
    Result<Usage> cpu_counter() const;
    /// CPU time of one group since its first worker. kUnavailable if it has no cgroup.
    Result<std::chrono::microseconds> cpu_time(WorkerGroup group) const;
    /// The memory_peak_bytes of usage().
    Result<std::uint64_t> memory_peak() const;
    /// Stricter limits from now on, in the order of LimitsChange. kConflict if more memory is in
    /// use already; kUnavailable if the control is absent. What came before a failure stays
    /// changed.
    Status change_limits(const LimitsChange& wanted);
    /// From now on usage() tells the highest memory since now; false: since the sandbox was made,
    /// because this kernel cannot begin anew.
    bool restart_memory_peak();
    const IsolationReport& isolation() const;

    /// The session's /workspace as a directory descriptor (O_PATH). Only for openat2 with
    /// RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS: see
    /// sandbox/workspace/workspace.hpp. Valid until destroy().
    int workspace_fd() const;
    /// The host uid and gid that own files in the workspace.
    uid_t file_uid() const;
    gid_t file_gid() const;

    /// The first step of destroy(), which waits for nothing: everything inside has its SIGKILL and
    /// nothing can be started any more. An owner of many sandboxes calls it for all of them first,
    /// so that they die together. destroy() returns what did not work.
    void begin_destroy();
    /// begin_destroy(); what is then left to wait for as a sandbox of its own, which is good for
    /// destroy() and may be destroyed on any thread. For the owner of this one it is destroyed.
    Sandbox release();
    /// What is left as a sandbox of its own, in which nothing is killed yet: retire() and then
    /// destroy() are what it is good for. For the owner of this one it is destroyed.
    Sandbox set_aside();
    /// Kills everything inside, reaps pid 1, removes the cgroup. Idempotent; after a failure (a
    /// kTimeout of a busy kernel, say) it may be called again. Blocks until the kernel has let go,
    /// at most about twice the patience.
    Status destroy(std::chrono::milliseconds patience = kDestroyPatience);

 private:
    explicit Sandbox(std::unique_ptr<SandboxState> state);
    std::unique_ptr<SandboxState> state_;
};

/// Removes what a server that was killed left behind: cgroups named for a server process of this
/// pid namespace that is no longer alive. (Processes need no sweep: pid 1 dies with its server.)
/// Call once at start.
Status sweep_leftovers();

/// Call once at a server's end, when no sandbox is left: waits for what could not be taken away
/// within a sandbox's own patience, because the machine is busy, say. Blocks at most that long.
/// kTimeout tells how many are still there: processes that were killed, and their cgroups.
Status finish_leftovers(std::chrono::milliseconds patience);

}  // namespace cellkeep::sandbox
