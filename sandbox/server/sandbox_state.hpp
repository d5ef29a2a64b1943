// SPDX-License-Identifier: Apache-2.0
//
// What a Sandbox owns, how it talks to pid 1 and how it ends. A part of sandbox.cpp.
#pragma once

#include "sandbox/sandbox.hpp"
#include "sandbox/server/assembly.hpp"
#include "sandbox/server/launch.hpp"
#include "sandbox/shared/messages.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::sandbox {

struct Sandbox::State {
    Launched pid1;
    SessionCgroup cgroup;
    IsolationReport isolation;
    std::shared_ptr<Zygote> zygote;  // which made it, and whose pid 1 is the parent of its pid 1
    uid_t file_uid = 0;
    gid_t file_gid = 0;
    WorkerId last_worker = 0;
    std::uint32_t last_sequence = 0;
    bool frozen = false;
    bool death_told = false;
    bool ending = false;     // destroy() was called: no more requests
    bool destroyed = false;  // destroy() has succeeded

    Status send(RequestHeader& header, const std::string& text, std::span<const int> fds);
    /// Sends a request and waits for its own reply; older replies (of requests that timed out) are
    /// dropped.
    Result<std::pair<ReplyMessage, std::vector<UniqueFd>>> ask(
        RequestHeader header,
        const std::string& text,
        std::span<const int> fds,
        std::chrono::milliseconds patience);

    /// So that what is killed inside can end: thaws.
    Status prepare_kill();
    /// Kills everything inside but pid 1, as far as that goes without pid 1; waits for nothing.
    Status kill_workers();
    /// Kills everything inside; waits for nothing.
    Status kill();
    Status destroy(std::chrono::milliseconds patience);
    /// destroy() for those who do not want to know: what it cannot end now is tried again later. It
    /// waits for nothing that destroy() has already waited for in vain.
    void abandon();
};

}  // namespace cellkeep::sandbox
