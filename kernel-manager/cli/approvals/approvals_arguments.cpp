// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/approvals/approvals_arguments.hpp"

namespace cellkeep::cli {

void add_approvals_commands(CLI::App& app, ApprovalsCommand& command) {
    CLI::App* approvals = app.add_subcommand(
        "approvals", "Calls of tools that wait for a person's word at a running server");
    approvals->require_subcommand(1);
    CLI::App* list = approvals->add_subcommand("list", "Show what waits, the oldest first");
    list->add_flag("--json", command.as_json, "For programs");
    CLI::App* allow = approvals->add_subcommand("allow", "Let the call be made");
    CLI::App* deny = approvals->add_subcommand("deny", "Refuse the call: its code gets an error");
    for (CLI::App* decision : {allow, deny}) {
        decision->add_option("ID", command.id, "apr_…")->required();
    }
    for (CLI::App* each : {list, allow, deny}) {
        each->add_option("--state-dir", command.state_dir, "As for serve");
    }
}

std::optional<int> run_approvals_commands(const CLI::App& app, const ApprovalsCommand& command) {
    if (!app.got_subcommand("approvals")) {
        return std::nullopt;
    }
    const CLI::App* approvals = app.get_subcommand("approvals");
    if (approvals->got_subcommand("list")) {
        return approvals_list(command);
    }
    return approvals->got_subcommand("allow") ? approvals_allow(command) : approvals_deny(command);
}

}  // namespace cellkeep::cli
