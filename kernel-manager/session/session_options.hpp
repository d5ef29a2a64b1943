// SPDX-License-Identifier: Apache-2.0
//
// What a client asks for when it creates a session. Values.
#pragma once

#include "kernel-manager/checkpoint/checkpoint.hpp"
#include "kernel-manager/egress/network_policy.hpp"
#include "kernel-manager/execution/execution.hpp"
#include "kernel-manager/limits/limits.hpp"

#include <nlohmann/json.hpp>

#include <map>
#include <string>
#include <vector>

namespace cellkeep::session {

/// When an idle session ends; its limits say how long idle is. As Jupyter Server counts it: looking
/// at a session (reconnecting, kernel_info, comm_info) is not activity.
struct CullRules {
    bool connected = false;  // also while clients are connected
    bool busy = false;       // also while a request runs
};

/// What is asked for when a session is created.
struct SessionOptions {
    /// The UUID that a Jupyter client wants as kernel id; empty: a fresh one. kConflict if taken.
    std::string kernel_id;
    /// Where the kernel starts, relative to the workspace; made if missing. Empty: the workspace.
    std::string working_directory;
    CullRules cull;
    std::string language = "python";
    std::string environment = "default";
    SessionLimits limits;
    /// Of a secret only its name is asked for; the Service fills in the rest.
    egress::NetworkPolicy network;
    std::map<std::string, std::string> env;
    std::vector<InputFile> files;
    nlohmann::json metadata = nlohmann::json::object();
    checkpoint::AutoCheckpoints auto_checkpoints = checkpoint::AutoCheckpoints::kOff;
    /// It can be branched, and Landlock does not say where its code may write.
    bool branches = false;
    std::string owner;  // principal; front ends fill it in
};

}  // namespace cellkeep::session
