// SPDX-License-Identifier: Apache-2.0
//
// How a session is made: what its Service gives to it. Values, and callbacks of the Service's.
#pragma once

#include "kernel-manager/checkpoint/files/blob_store.hpp"
#include "kernel-manager/egress/egress_service.hpp"
#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/execution/inputs_directory.hpp"
#include "kernel-manager/execution/operator_tools.hpp"
#include "kernel-manager/execution/watch/watch_ration.hpp"
#include "kernel-manager/kernel/kernel_spec.hpp"
#include "kernel-manager/languages/kernel_catalog.hpp"
#include "kernel-manager/languages/shared_variables.hpp"
#include "kernel-manager/limits/limit_reason.hpp"
#include "kernel-manager/session/checkpoints/branch_seed.hpp"
#include "kernel-manager/session/checkpoints/family.hpp"
#include "kernel-manager/session/session.hpp"
#include "kernel-manager/session/session_info.hpp"
#include "kernel-manager/session/session_options.hpp"
#include "protocol/support/work_thread.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::session {

/// How a session is made.
struct SessionSetup {
    std::string id;
    std::string kernel_id;
    SessionOptions options;
    KernelSpec spec;  // of its main kernel
    /// What else may run in its sandbox; null: nothing.
    std::shared_ptr<const KernelCatalog> catalog = nullptr;
    std::vector<std::string> network_env = {};                // "NAME=value", for every kernel
    std::shared_ptr<egress::EgressService> egress_service;    // null: the server gives no network
    std::shared_ptr<egress::SessionProxy> proxy;              // null: this session has none
    std::shared_ptr<OperatorTools> operator_tools = nullptr;  // null: the server gives none
    std::chrono::milliseconds start_timeout{0};
    /// At rest for so long, the sandbox is frozen until it is needed; 0: never.
    std::chrono::seconds freeze_after{0};
    std::function<void(bool frozen)> log_frozen;  // may be empty
    /// A client asked for shutdown, the session is idle or old, or it is a spare that died: the
    /// Service removes it.
    std::function<void(Death)> on_end_requested;
    /// One line for the server's log.
    std::function<void(const std::string&)> log;
    /// A run ended with a limit; the execution's id is empty for a Jupyter client's.
    std::function<void(const std::string& execution_id, const LimitHit&)> log_limit;
    /// What readers of files share; null: files of the session cannot be watched.
    std::shared_ptr<WatchRation> watch_ration;
    /// Reads what executions leave.
    std::shared_ptr<WorkThread> work_thread;
    /// Moves processes to cgroups, for which the kernel takes some milliseconds.
    std::shared_ptr<WorkThread> cgroup_thread;
    /// Where checkpoints keep files; null: they keep none.
    std::shared_ptr<checkpoint::BlobSpace> blob_space;
    /// Reads the operator's inputs, whose disk may stall: nothing else waits for it.
    std::shared_ptr<WorkThread> inputs_thread;
    std::shared_ptr<const InputsDirectory> inputs;  // null: there is none
    Session::Inputs mounted;                        // of them, in this sandbox
    /// Made in advance for no client yet: neither culled nor restarted until a client gets it.
    bool spare = false;

    /// Never null in a session of the Service's.
    std::shared_ptr<FamilyMember> family = nullptr;
    /// Of a branch: how its interpreter comes, and what is told of it.
    std::function<boost::asio::awaitable<Result<WokenProcess>>(BranchTarget)> come = nullptr;
    std::optional<BranchInfo> branch = std::nullopt;

    /// They are in force from now on. Folders that the session names itself do not hide those of
    /// its environment.
    void set_options(SessionOptions wanted) {
        options = std::move(wanted);
        options.env = join_variables(spec, std::move(options.env));
    }
    /// Whether code of that language may run in its sandbox beside its own.
    bool offers(const std::string& language) const {
        return catalog && catalog->find(language) != nullptr;
    }
    /// Of a language that it does not offer (refuse_language()).
    Error refuse(const std::string& language) const {
        return catalog ? catalog->refuse(language) : refuse_language(language, {});
    }
};

}  // namespace cellkeep::session
