// SPDX-License-Identifier: Apache-2.0
//
// Sessions on their way to another program, with descriptors of files that mean nothing.
#pragma once

#include "kernel-manager/session/passing/passed_sessions.hpp"

#include <nlohmann/json.hpp>

#include <sys/mman.h>

#include <memory>
#include <string>
#include <utility>

namespace cellkeep::session::test {

inline UniqueFd any_file() {
    return UniqueFd(::memfd_create("any", MFD_CLOEXEC));
}

inline sandbox::PassedSandbox any_sandbox() {
    sandbox::PassedSandbox passed;
    passed.pidfd = any_file();
    passed.control = any_file();
    passed.events = any_file();
    passed.workspace = any_file();
    passed.cgroup.directories = {"/a", "/a/b"};
    passed.cgroup.memory = {"/a", sandbox::CgroupVersion::kV1};
    passed.cgroup.leaves = {{0, "/a/b"}, {3, "/a/c"}};
    passed.cgroup.cpu_quota = "100";
    passed.cgroup.can_kill = true;
    passed.isolation.controls = {
        {"seccomp", sandbox::ControlState::kApplied, "filter", "", ""},
        {"freeze", sandbox::ControlState::kAbsent, "", "why", "fix"}};
    passed.file_uid = 5;
    passed.last_worker = 6;
    passed.last_request = 7;
    return passed;
}

inline PassedSessions any_sessions() {
    PassedSessions passed;
    PassedSession session;
    session.id = "ses_1";
    session.kernel_id = "k";
    session.slot = 4;
    session.state = nlohmann::json::object({{"text", std::string("\xff\0", 2)}});
    session.sandbox = any_sandbox();
    session.interpreter = {9, any_file(), any_file(), any_file(), any_file()};
    for (const sandbox::WorkerId worker : {10U, 11U}) {
        session.further.push_back({worker, any_file(), any_file(), any_file(), any_file()});
    }
    session.commands.push_back({any_file(), any_file(), any_file(), {}});
    session.commands.push_back({{}, {}, {}, any_file()});
    session.commands.emplace_back();
    session.network.push_back(any_file());
    session.network.push_back(any_file());
    session.zygote = 0;
    session.branch = {"ses_0", "ckp_1", "label"};
    passed.sessions.push_back(std::move(session));
    PassedRemains remains;
    remains.id = "ses_0";
    remains.parent = "ses_00";
    remains.slot = 3;
    remains.sandbox = any_sandbox();
    remains.zygote = 0;
    passed.remains.push_back(std::move(remains));
    passed.zygotes.push_back(any_sandbox());
    passed.leases.push_back(std::make_shared<const UniqueFd>(any_file()));
    passed.catalogs.push_back(nlohmann::json::object({{"specs", nlohmann::json::array()}}));
    passed.fronts = nlohmann::json::object({{"a", 1}});
    passed.front_fds.push_back(any_file());
    passed.authority = nlohmann::json::object({{"key", "k"}});
    passed.cgroups_named = 11;
    return passed;
}

/// What exec does with the old program's own.
inline void forget(PassedInterpreter& interpreter) {
    for (UniqueFd* fd :
         {&interpreter.pidfd, &interpreter.link, &interpreter.stdout_fd, &interpreter.stderr_fd}) {
        (void)fd->release();
    }
}

inline void forget(sandbox::PassedSandbox& sandbox) {
    for (UniqueFd* fd : {&sandbox.pidfd, &sandbox.control, &sandbox.events, &sandbox.workspace}) {
        (void)fd->release();
    }
}

inline void forget(PassedSessions& passed) {
    for (PassedRemains& remains : passed.remains) {
        forget(remains.sandbox);
    }
    for (PassedSession& session : passed.sessions) {
        forget(session.sandbox);
        forget(session.interpreter);
        for (PassedInterpreter& interpreter : session.further) {
            forget(interpreter);
        }
        for (process::CommandEnds& ends : session.commands) {
            for (UniqueFd* fd : {&ends.input, &ends.out, &ends.err, &ends.controller}) {
                (void)fd->release();
            }
        }
        for (UniqueFd& fd : session.network) {
            (void)fd.release();
        }
    }
    for (sandbox::PassedSandbox& zygote : passed.zygotes) {
        forget(zygote);
    }
    for (UniqueFd& fd : passed.front_fds) {
        (void)fd.release();
    }
}

}  // namespace cellkeep::session::test
