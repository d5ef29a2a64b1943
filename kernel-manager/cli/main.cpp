// SPDX-License-Identifier: Apache-2.0
//
// The `cellkeep` program: its command line, and nothing else.
#include "kernel-manager/cli/approvals/approvals_arguments.hpp"
#include "kernel-manager/cli/commands.hpp"
#include "kernel-manager/cli/env/env_arguments.hpp"
#include "kernel-manager/cli/image_arguments.hpp"
#include "kernel-manager/cli/kernel/kernel_arguments.hpp"
#include "kernel-manager/cli/mcp/setup/client_program.hpp"
#include "kernel-manager/cli/mcp/setup/setup.hpp"
#include "kernel-manager/cli/run/console.hpp"
#include "kernel-manager/cli/serve/serve_arguments.hpp"

#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cellkeep::cli {

namespace {

/// Something that no command expected: sysexits.h's EX_SOFTWARE.
constexpr int kExitInternal = 70;
constexpr std::size_t kMcpSessionsMax = 1000;

void add_run(CLI::App& app, RunCommand& command, std::uint32_t& timeout_seconds) {
    CLI::App* sub = app.add_subcommand("run", "Run a notebook or a program in a session");
    sub->add_option("FILE", command.file, "FILE.ipynb, or a program: FILE.py, FILE.sh, FILE.js …")
        ->required();
    sub->add_option(
        "--language",
        command.language,
        "What the file is written in. Default: as the notebook or the file's name says");
    sub->add_option(
           "--environment", command.environment, "A named environment: \"cellkeep env list\"")
        ->capture_default_str();
    sub->add_option("--kernels", command.kernels, "As for serve; not with --server");
    sub->add_option(
        "--server",
        command.server_state_dir,
        "State directory of a running server. Default: a session of this process");
    sub->add_option(
        "--output", command.output, "The executed notebook. Default: FILE.executed.ipynb");
    sub->add_option("--figures-dir", command.figures_dir, "Also save PNG pictures here");
    sub->add_flag("--keep-session", command.keep_session, "Leave the session on the server alive");
    sub->add_option("--timeout", timeout_seconds, "Seconds for one cell")
        ->capture_default_str()
        ->check(CLI::Range(1U, 86'400U));
    sub->add_option("--allow-degraded", command.allow_degraded, "As for serve; not with --server");
}

void add_mcp_setup(CLI::App& mcp, McpSetupCommand& command) {
    std::vector<std::string> names;
    for (const ClientProgram& program : client_programs()) {
        names.emplace_back(program.name);
    }
    for (const char* verb : {"install", "remove"}) {
        const bool removes = std::string_view(verb) == "remove";
        CLI::App* sub = mcp.add_subcommand(
            verb,
            removes ? "Take this server out of an agent's program again"
                    : "Write this server into the configuration of an agent's program");
        sub->add_option("--client", command.client, "The program")
            ->required()
            ->check(CLI::IsMember(names));
        sub->add_option("--name", command.name, "Of the entry")->capture_default_str();
        sub->add_option("--file", command.file, "Default: where the program looks");
        sub->add_flag("--yes", command.yes, "Ask nothing");
        if (!removes) {
            sub->add_option("--server", command.server_state_dir, "As for mcp");
            sub->add_option("--mcp-servers", command.mcp_servers, "As for mcp")
                ->excludes("--server");
        }
    }
}

void add_mcp(CLI::App& app, McpCommand& command, McpSetupCommand& setup) {
    CLI::App* sub =
        app.add_subcommand("mcp", "Speak the Model Context Protocol over stdin and stdout");
    sub->add_option(
        "--server",
        command.server_state_dir,
        "State directory of a running server. Default: sessions of this process");
    sub->add_option("--max-sessions", command.sessions_max, "Sessions at once; not with --server")
        ->capture_default_str()
        ->check(CLI::Range(std::size_t{1}, kMcpSessionsMax));
    sub->add_option("--kernels", command.kernels, "As for serve; not with --server");
    sub->add_option("--allow-degraded", command.allow_degraded, "As for serve; not with --server");
    sub->add_option("--mcp-servers", command.mcp_servers, "As for serve; not with --server")
        ->excludes("--server");
    add_mcp_setup(*sub, setup);
}

/// Speaks the protocol, or sets another program up for it.
int run_mcp(const CLI::App& app, const McpCommand& command, McpSetupCommand setup) {
    const CLI::App* sub = app.get_subcommand("mcp");
    setup.remove = sub->got_subcommand("remove");
    return setup.remove || sub->got_subcommand("install") ? set_up_mcp(setup) : mcp(command);
}

void add_connect(CLI::App& app, ConnectCommand& command) {
    CLI::App* sub = app.add_subcommand("connect", "Show how Jupyter clients attach to a session");
    sub->add_option("SESSION", command.session, "ses_…")->required();
    sub->add_option("--state-dir", command.state_dir, "As for serve");
}

void add_exec(CLI::App& app, ExecCommand& exec_command, ExecCommand& shell_command) {
    CLI::App* sub = app.add_subcommand("exec", "Run a command in a session of a running server");
    sub->add_option("SESSION", exec_command.session, "ses_…")->required();
    sub->add_option("COMMAND", exec_command.argv, "After --: a program and its arguments")
        ->required();
    sub->add_flag("-i,--interactive", exec_command.input, "Send it what comes on stdin");
    sub->add_flag("-t,--tty", exec_command.terminal, "Give it a terminal");
    sub->add_option("--cwd", exec_command.directory, "Where it runs, inside");
    sub->add_option("--state-dir", exec_command.state_dir, "As for serve");
    CLI::App* shell = app.add_subcommand("shell", "Open a terminal in a session");
    shell->add_option("SESSION", shell_command.session, "ses_…")->required();
    shell->add_option("COMMAND", shell_command.argv, "After --: instead of bash");
    shell->add_option("--cwd", shell_command.directory, "Where it runs, inside");
    shell->add_option("--state-dir", shell_command.state_dir, "As for serve");
}

/// The command of exec in a terminal: bash, unless another program is named.
int run_shell(ExecCommand command) {
    command.terminal = true;
    if (command.argv.empty()) {
        command.argv = {"bash", "-i"};
    }
    return exec(command);
}

/// Commands that have commands of their own.
struct CommandGroups {
    KernelArguments kernels;
    ApprovalsCommand approvals;
    ImageArguments images;
    EnvArguments environments;
};

void add_groups(CLI::App& app, CommandGroups& groups) {
    add_approvals_commands(app, groups.approvals);
    add_kernel_commands(app, groups.kernels);
    add_image_commands(app, groups.images);
    add_env_commands(app, groups.environments);
}

/// nullopt: the command is of none of the groups.
std::optional<int> run_groups(const CLI::App& app, const CommandGroups& groups) {
    if (const auto code = run_kernel_commands(app, groups.kernels)) {
        return code;
    }
    if (const auto code = run_approvals_commands(app, groups.approvals)) {
        return code;
    }
    if (const auto code = run_image_commands(app, groups.images)) {
        return code;
    }
    return run_env_commands(app, groups.environments);
}

int dispatch(int argc, char** argv) {
    CLI::App app("Cellkeep: sandboxed interpreters whose variables, files and plots live on");
    app.name("cellkeep");
    app.require_subcommand(1);

    ServeCommand serve_command;
    add_serve(app, serve_command);
    RunCommand run_command;
    auto timeout_seconds = static_cast<std::uint32_t>(run_command.timeout.count());
    add_run(app, run_command, timeout_seconds);
    McpCommand mcp_command;
    McpSetupCommand mcp_setup_command;
    add_mcp(app, mcp_command, mcp_setup_command);
    ConnectCommand connect_command;
    add_connect(app, connect_command);
    ExecCommand exec_command;
    ExecCommand shell_command;
    add_exec(app, exec_command, shell_command);
    bool doctor_as_json = false;
    CLI::App* doctor_sub =
        app.add_subcommand("doctor", "Check what the sandbox can apply on this host");
    doctor_sub->add_flag("--json", doctor_as_json, "For programs");
    app.add_subcommand("version", "Print the version");
    CommandGroups groups;
    add_groups(app, groups);

    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& failure) {
        return app.exit(failure) == 0 ? kExitDone : kExitUsage;
    }
    if (const auto code = run_groups(app, groups)) {
        return *code;
    }
    if (app.got_subcommand("serve")) {
        return serve(serve_command);
    }
    if (app.got_subcommand("run")) {
        run_command.timeout = std::chrono::seconds(timeout_seconds);
        return run(run_command);
    }
    if (app.got_subcommand("mcp")) {
        return run_mcp(app, mcp_command, std::move(mcp_setup_command));
    }
    if (app.got_subcommand("connect")) {
        return connect(connect_command);
    }
    if (app.got_subcommand("exec")) {
        return exec(exec_command);
    }
    if (app.got_subcommand("shell")) {
        return run_shell(std::move(shell_command));
    }
    if (app.got_subcommand("doctor")) {
        return doctor(doctor_as_json ? DoctorFormat::kJson : DoctorFormat::kTable);
    }
    return version();
}

}  // namespace

static int run_main(int argc, char** argv) {
    try {
        return dispatch(argc, argv);
    } catch (const std::exception& failure) {
        print_error("cellkeep: internal error: " + std::string(failure.what()) + "\n");
        return kExitInternal;
    }
}

}  // namespace cellkeep::cli

int main(int argc, char** argv) {
    // A peer that closes is an error code, never a signal.
    (void)std::signal(SIGPIPE, SIG_IGN);
    return cellkeep::cli::run_main(argc, argv);
}
