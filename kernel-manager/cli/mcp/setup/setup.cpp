// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/mcp/setup/setup.hpp"

#include "kernel-manager/cli/commands.hpp"
#include "kernel-manager/cli/mcp/setup/client_program.hpp"
#include "kernel-manager/cli/mcp/setup/config_change.hpp"
#include "kernel-manager/cli/preparing/build_process.hpp"
#include "kernel-manager/cli/run/console.hpp"

#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <system_error>

namespace cellkeep::cli {

namespace {

/// The program and how it is started, with paths that hold wherever the agent starts it.
Result<ServerEntry> entry_for(const McpSetupCommand& command) {
    if (!is_entry_name(command.name)) {
        return Error(
            ErrorCode::kInvalidArgument,
            "--name: 1 to 64 letters, digits, underscores and hyphens.");
    }
    ServerEntry entry{command.name, own_program(), {"mcp"}};
    std::error_code failure;
    entry.command = std::filesystem::canonical(entry.command, failure).string();
    if (failure) {
        return Error(ErrorCode::kSystem, "This program's own file cannot be found.");
    }
    if (command.server_state_dir) {
        const auto directory = std::filesystem::absolute(*command.server_state_dir, failure);
        if (failure) {
            return Error(ErrorCode::kInvalidArgument, "--server: there is no such directory.");
        }
        entry.arguments.insert(entry.arguments.end(), {"--server", directory.string()});
    }
    if (command.mcp_servers) {
        const auto file = std::filesystem::canonical(*command.mcp_servers, failure);
        if (failure) {
            return Error(ErrorCode::kInvalidArgument, "--mcp-servers: there is no such file.");
        }
        entry.arguments.insert(entry.arguments.end(), {"--mcp-servers", file.string()});
    }
    return entry;
}

Result<std::string> file_for(const McpSetupCommand& command, const ClientProgram& program) {
    if (command.file) {
        return *command.file;
    }
    BOOST_OUTCOME_TRY(const ClientHome home, ClientHome::of_environment());
    return config_path(program, home);
}

/// Nobody to ask is a no.
Result<bool> may_write(const McpSetupCommand& command) {
    if (command.yes) {
        return true;
    }
    if (::isatty(STDIN_FILENO) == 0) {
        return Error(
            ErrorCode::kInvalidArgument,
            "Nothing was written: there is no terminal to ask.",
            "Run it again with --yes.");
    }
    print("Write this? [y/N] ");
    std::string answer;
    std::getline(std::cin, answer);
    return answer == "y" || answer == "Y" || answer == "yes";
}

/// The command that takes the entry away again.
std::string undoing(const McpSetupCommand& command, const std::string& path) {
    std::string text = "cellkeep mcp remove --client " + command.client;
    if (command.name != McpSetupCommand().name) {
        text += " --name " + command.name;
    }
    return command.file ? text + " --file '" + path + "'" : text;
}

Status run_setup(const McpSetupCommand& command) {
    const ClientProgram* program = find_client_program(command.client);
    if (program == nullptr) {
        return Error(ErrorCode::kInvalidArgument, "--client: there is no such client.");
    }
    BOOST_OUTCOME_TRY(const ServerEntry entry, entry_for(command));
    BOOST_OUTCOME_TRY(const std::string path, file_for(command, *program));
    const auto planned =
        command.remove ? plan_removal(*program, path, entry) : plan_install(*program, path, entry);
    if (planned.has_error() && planned.error().code() == ErrorCode::kNotFound) {
        print(
            std::string(program->title) + " has no entry \"" + command.name + "\" in " + path +
            "\n");
        return ok();
    }
    BOOST_OUTCOME_TRY(const ConfigChange change, planned);
    if (!change.changes()) {
        print(change.path + " has this entry already.\n");
        return ok();
    }
    print(describe_change(change));
    BOOST_OUTCOME_TRY(const bool may, may_write(command));
    if (!may) {
        print("Nothing was written.\n");
        return ok();
    }
    BOOST_OUTCOME_TRY(apply_change(change));
    print(
        command.remove ? "Done. Start " + std::string(program->title) + " again.\n"
                       : "Done. Start " + std::string(program->title) + " again; `" +
                             undoing(command, change.path) + "` undoes this.\n");
    return ok();
}

}  // namespace

int set_up_mcp(const McpSetupCommand& command) {
    const Status done = run_setup(command);
    if (done.has_error()) {
        print_error(done.error());
        return kExitFailed;
    }
    return kExitDone;
}

}  // namespace cellkeep::cli
