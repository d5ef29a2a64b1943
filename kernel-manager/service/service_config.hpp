// SPDX-License-Identifier: Apache-2.0
//
// What a server's operator decides about its sessions, and where the service writes its log. Values
// and callbacks; every callback may be empty.
#pragma once

#include "kernel-manager/egress/egress_service.hpp"
#include "kernel-manager/execution/inputs_directory.hpp"
#include "kernel-manager/execution/operator_tools.hpp"
#include "kernel-manager/languages/kernel_catalog.hpp"
#include "kernel-manager/limits/limit_reason.hpp"
#include "kernel-manager/limits/limits.hpp"
#include "kernel-manager/session/idle_freezer.hpp"
#include "kernel-manager/session/packages/package_index.hpp"
#include "kernel-manager/session/session_options.hpp"
#include "kernel-manager/warm/zygote_keeper.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace cellkeep::session {

/// Sessions that are made before a client asks for them, so that a client does not wait for one.
/// They take places among sessions_max, and give way when a client needs the place.
struct Prespawn {
    std::size_t count = 0;
    /// Of these, language, environment and limits count. A client brings the rest.
    SessionOptions options;
};

struct ServiceConfig {
    std::size_t sessions_max = 64;
    LimitCeilings ceilings;
    /// Control names whose absence is accepted (--allow-degraded).
    std::set<std::string, std::less<>> allow_degraded;
    /// In root mode session n runs as host uid and gid host_id_base + n.
    std::uint32_t host_id_base = 900'000;
    std::chrono::milliseconds start_timeout{60'000};
    KernelCatalog catalog;
    /// The catalog only tells the languages: no session begins before Service::provide().
    bool preparing = false;
    /// Where files[].from come from; null: there are none.
    std::shared_ptr<InputsDirectory> inputs;
    std::vector<Prespawn> prespawn;
    /// Interpreters go on from a zygote of their language where that can be (ZygoteKeeper).
    /// Otherwise each starts from nothing.
    bool zygotes = false;
    /// Python modules that the zygotes of Python import; "usual" stands for what its kernel names.
    std::vector<std::string> preload = {"usual"};
    ZygoteBounds zygote_bounds;
    /// What sessions may reach of the network; null: nothing.
    std::shared_ptr<egress::EgressService> egress_service;
    /// What sessions with a network may install packages from; nothing: they are led to none.
    std::optional<PackageIndex> package_index;
    /// Tools that code may call; null: none.
    std::shared_ptr<OperatorTools> operator_tools;
    /// One line for the server's log, at most one for each odd thing that a client or a session
    /// does.
    std::function<void(const std::string&)> log;
    /// A run ended with a limit; the execution's id is empty for a Jupyter client's.
    std::function<void(
        const std::string& session_id, const std::string& execution_id, const LimitHit&)>
        log_limit;
    /// Of sessions that do not say: SessionLimits::consecutive_failures.
    std::uint32_t consecutive_failures = 10;
    /// A session that was at rest for this long is frozen until it is needed; 0: never.
    std::chrono::seconds freeze_after = kFreezeAfterDefault;
    std::function<void(const std::string& session_id, bool frozen)> log_frozen;
    /// Called once: the server is ready (Service::ready()), with the time since it was made.
    std::function<void(std::chrono::milliseconds)> log_ready;
    /// How many spares there may be, those of `prespawn` counted, when more are asked for
    /// (service/spare_demand.hpp); 0: only those of `prespawn`.
    std::size_t prespawn_most = 0;
    /// Where the files that checkpoints keep lie, without names.
    std::string checkpoint_directory = "/var/tmp";
};

}  // namespace cellkeep::session
