// SPDX-License-Identifier: Apache-2.0
//
// What a Sandbox owns, how it talks to pid 1 and how it ends. A part of sandbox.cpp.
#pragma once

#include "sandbox/sandbox.hpp"
#include "sandbox/server/assembly.hpp"
#include "sandbox/server/init_channel.hpp"
#include "sandbox/server/launch.hpp"
#include "sandbox/server/start_reply.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::sandbox {

struct SandboxState {
    Launched pid1;
    SessionCgroup cgroup;
    IsolationReport isolation;
    std::shared_ptr<Zygote> zygote;  // which made it, and whose pid 1 is the parent of its pid 1
    uid_t file_uid = 0;
    gid_t file_gid = 0;
    InitChannel channel{std::move(pid1.control)};
    WorkerId last_worker = 0;
    std::optional<AskedStart> asked =
        std::nullopt;  // whose reply take_start() has not returned yet
    std::optional<WorkerGroup> sleepers_among = std::nullopt;  // whose cgroup they are to leave
    bool sweep_waits = false;                                  // of that group, until they have
    bool given_up = false;                                     // give_up() has killed pid 1
    bool frozen = false;
    bool death_told = false;
    std::string death = {};  // Sandbox::unexpected_end()
    bool ending = false;     // destroy() was called: no more requests
    bool destroyed = false;  // destroy() has succeeded

    /// So that what is killed inside can end: thaws.
    Status prepare_kill();
    /// SIGKILL to pid 1; nothing if it has ended.
    void kill_pid1() const;
    /// Kills everything inside but pid 1, as far as that goes without pid 1; waits for nothing.
    Status kill_workers();
    /// The group's becomes the sleepers', who are to be moved there. Nothing if that was done.
    Status give_sleepers_cgroup(WorkerGroup group);
    /// The cgroup.procs files of the cgroups that a worker does not enter by being started.
    std::vector<std::string> outer_procs_files() const;
    /// Sandbox::retire().
    Status retire();
    /// Kills everything inside; waits for nothing.
    Status kill();
    /// Pid 1 reports nothing more, although the owner has not destroyed the sandbox.
    void note_death(std::string why);
    /// The same because of an error, which it returns.
    Error fail(Error why);
    Status destroy(std::chrono::milliseconds patience);
    /// destroy() without its result: what it cannot end now becomes a leftover. It does not wait
    /// again for what destroy() has already waited for in vain.
    void abandon();
};

/// What the cgroup counted, as the users of a Sandbox see it.
Usage to_usage(const CgroupUsage& now);

}  // namespace cellkeep::sandbox
