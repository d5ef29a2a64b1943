// SPDX-License-Identifier: Apache-2.0
//
// `cellkeep approvals`: the calls of tools that wait for a person at a running server, and the
// person's word. Each command returns the exit code.
#pragma once

#include <optional>
#include <string>

namespace cellkeep::cli {

struct ApprovalsCommand {
    std::string id;                        // of allow and deny
    bool as_json = false;                  // of list
    std::optional<std::string> state_dir;  // nothing: the default
};

int approvals_list(const ApprovalsCommand& command);
int approvals_allow(const ApprovalsCommand& command);
int approvals_deny(const ApprovalsCommand& command);

}  // namespace cellkeep::cli
