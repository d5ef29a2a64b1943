// SPDX-License-Identifier: Apache-2.0
//
// A session as a client may see it. Values.
#pragma once

#include "kernel-manager/checkpoint/checkpoint.hpp"
#include "kernel-manager/egress/network_policy.hpp"
#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/kernel/kernel_spec.hpp"
#include "kernel-manager/kernel/kernel_state.hpp"
#include "kernel-manager/languages/not_offered.hpp"
#include "kernel-manager/limits/budgets.hpp"
#include "kernel-manager/limits/circuit_breaker.hpp"
#include "kernel-manager/limits/limits.hpp"
#include "sandbox/policy/isolation.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::session {

/// One of the languages that a session offers: its own and those of which a further interpreter
/// starts in the same sandbox when code in it first comes.
struct LanguageInfo {
    std::string name;
    std::optional<KernelState> state;  // nothing: no code has come yet
    std::optional<Death> death;        // of its last interpreter, if that is dead
    std::uint64_t restarts = 0;
};

/// What code in a session may be written in.
struct OfferedLanguages {
    std::vector<std::string> names;  // its own first
    /// As in SessionInfo.
    std::shared_ptr<const std::vector<NotOffered>> not_offered;
};

/// What is told of a branch.
struct BranchInfo {
    std::string parent;      // the id of its session
    std::string checkpoint;  // of that session
    std::optional<std::string> label;
};

/// A session as anyone may see it, now.
struct SessionInfo {
    std::string id;                       // "ses_" and 24 hexadecimal digits
    std::string kernel_id;                // UUID: the same session for Jupyter front ends
    std::string language;                 // its own, in which front ends see its kernel
    std::vector<LanguageInfo> languages;  // its own first
    /// Why others do not run in it; null: nothing is known. Shared: it is asked for often.
    std::shared_ptr<const std::vector<NotOffered>> not_offered;
    KernelState state = KernelState::kStarting;
    bool frozen = false;         // its processes stand still until they are needed
    bool paused = false;         // a client asked for that (Session::freeze())
    std::optional<Death> death;  // of the last kernel in its own language, if it is dead
    SessionLimits limits;
    egress::NetworkPolicy network;
    egress::Traffic traffic;  // zeros without a network
    EnvironmentInfo environment;
    sandbox::IsolationReport isolation;
    checkpoint::AutoCheckpoints auto_checkpoints = checkpoint::AutoCheckpoints::kOff;
    bool branches = false;  // it can be branched
    nlohmann::json metadata;
    std::optional<BranchInfo> branch;  // it was branched from another session
    std::string owner;
    std::chrono::system_clock::time_point created_at;
    std::chrono::system_clock::time_point last_activity;
    std::uint64_t executions = 0;      // accepted so far
    std::uint64_t restarts = 0;        // in all languages
    std::size_t connections = 0;       // of clients that said so with connect_client()
    std::string connection_file;       // empty: no ZeroMQ front
    std::uint64_t output_dropped = 0;  // journal entries no longer kept
    BudgetUse used;                    // what its life has cost so far
    CircuitInfo circuit;
};

OfferedLanguages languages_of(const SessionInfo& info);

}  // namespace cellkeep::session
