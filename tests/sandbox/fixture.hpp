// SPDX-License-Identifier: Apache-2.0
//
// What the sandbox tests share: a policy for this machine, programs run inside with their output
// collected, and the same probe run outside as the positive control.
#pragma once

#include "sandbox/sandbox.hpp"
#include "sandbox/server/zygote.hpp"

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace cellkeep::test {

/// How long a test waits for anything before it fails.
inline constexpr std::chrono::seconds kPatience{20};

/// The uid and gid of test sessions when the tests run as root.
inline constexpr uid_t kSessionUid = 64'321;

/// The whole of /usr, some of /etc, and the probe at /probe. If the tests do not run as root, every
/// cgroup control is waived.
sandbox::Policy test_policy();

/// A zygote that runs the probe, for sandboxes of that policy.
std::shared_ptr<sandbox::Zygote> make_zygote(const sandbox::Policy& policy = test_policy());
/// The specification of such a zygote; `what` is an argument of the probe (probe_main.cpp).
sandbox::ZygoteSpec zygote_spec(const sandbox::Policy& policy, const std::string& what);

/// A sandbox of that policy; fails the test case if it cannot be made.
sandbox::Sandbox make_sandbox(const sandbox::Policy& policy = test_policy());

struct Ran {
    bool signaled = false;
    int status = 0;  // a signal or an exit code
    std::string out;
    std::string err;
};

/// Runs a program inside to its end.
Ran run_inside(
    sandbox::Sandbox& sandbox,
    const std::vector<std::string>& argv,
    const std::vector<std::string>& env = {});

/// The same; a warm worker is a fork of the zygote's program.
Ran run_any(
    sandbox::Sandbox& sandbox,
    const std::vector<std::string>& argv,
    const std::vector<std::string>& env,
    bool warm);

/// Runs /usr/bin/python3 -c code inside.
Ran run_python(sandbox::Sandbox& sandbox, const std::string& code);

/// Runs the probe inside or outside; its output without the newline: "ok", an errno's name, or
/// text.
std::string probe_inside(sandbox::Sandbox& sandbox, const std::vector<std::string>& arguments);
std::string probe_outside(const std::vector<std::string>& arguments);

/// Starts a program and drops its output.
sandbox::Worker start_inside(sandbox::Sandbox& sandbox, const std::vector<std::string>& argv);

/// Waits for the next event of the sandbox; fails the test case if none comes.
sandbox::SandboxEvent wait_any_event(sandbox::Sandbox& sandbox);

/// The next event that is no denial.
sandbox::SandboxEvent wait_event(sandbox::Sandbox& sandbox);

/// Waits until fd is readable; false after kPatience.
bool wait_readable(int fd);

/// A number as an argument of the probe.
std::string text(long value);

/// The whole file; empty if it cannot be read.
std::string slurp(const std::string& path);

/// Everything until end of file; fails the test case after kPatience.
std::string read_all(int fd);

/// Every directory below the cgroup mounts that belongs to the server with this pid: its own and
/// its sessions'. Not the one that it has stepped aside into in a delegated v2 cgroup
/// (cgroup_v2.cpp): that stays as long as it lives.
std::vector<std::string> cgroups_of(pid_t server);

/// How many descriptors this process has, the ready networks' included.
std::ptrdiff_t open_descriptors();

/// Whether this process has a child, ended or not.
bool has_children();

/// Pid 1 of the only sandbox there is.
pid_t only_child();

/// Until a process's parent has reaped it, or it is this process's to reap: how it ended is known
/// then. A zygote that gets no processor may take longer than the sandbox waits (kReaperPatience).
void await_reaper(pid_t pid);

/// Fails the test case if the status is an error.
void require_ok(const Status& status);

}  // namespace cellkeep::test
