// SPDX-License-Identifier: Apache-2.0
//
// What passes of E2B's protocol to another program in the server's process: the key that its
// clients' tokens are made with, when sandboxes end, names of contexts and snapshots, keys of
// requests, deadlines of commands. Values; pure functions.
#pragma once

#include "kernel-manager/e2b/control/idempotency.hpp"
#include "kernel-manager/e2b/control/sandbox_book.hpp"
#include "kernel-manager/e2b/control/snapshot_book.hpp"
#include "kernel-manager/e2b/envd/command_deadlines.hpp"
#include "kernel-manager/e2b/interpreter/contexts.hpp"
#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <functional>
#include <string>
#include <vector>

namespace cellkeep::e2b {

struct PassedSandboxes {
    std::string token_key;  // SandboxTokens::key()
    SandboxBook::Records records;
    Contexts::BySession contexts;
    std::vector<Snapshot> snapshots;
    Idempotency::Passed keys;
    std::string debug_session;  // "": there was none
    std::vector<PassedDeadline> deadlines;
};

nlohmann::json write_sandboxes(const PassedSandboxes& passed);
/// kProtocol for another form, or for values that no program of ours has.
Result<PassedSandboxes> read_sandboxes(const nlohmann::json& text);
/// Takes out what belongs to sessions that did not pass.
void keep_only(PassedSandboxes& passed, const std::function<bool(const std::string&)>& is_there);

}  // namespace cellkeep::e2b
