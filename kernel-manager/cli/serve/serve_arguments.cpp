// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/serve/serve_arguments.hpp"

#include "kernel-manager/cli/upgrade/command_line.hpp"

namespace cellkeep::cli {

namespace {

void add_token_options(CLI::App& sub, ServeOptions& flags) {
    sub.add_option(
        "--token",
        flags.token,
        "The administrator's token. Default: a random one. Other users can see a command line: "
        "prefer the environment variable CELLKEEP_TOKEN");
    sub.add_option(
        "--token-file",
        flags.token_file,
        "JSON file of mode 0600: others who may use the server, each with a role (admin, agent, "
        "observer) and a token");
}

void add_kernel_options(CLI::App& sub, ServeOptions& flags) {
    constexpr const char* kGroup = "Kernels that Jupyter front ends start";
    sub.add_option(
           "--default-kernel-name",
           flags.default_kernel_name,
           "The kernel of a client that names none. Default: python3")
        ->group(kGroup);
    sub.add_option(
           "--allowed-envs",
           flags.allowed_envs,
           "Pass this variable of a client to its kernel, besides KERNEL_*. Repeat it for several")
        ->group(kGroup);
    sub.add_option(
           "--cull-idle-timeout",
           flags.cull_idle_timeout,
           "End a kernel after this number of seconds without activity. Default: 0, never")
        ->group(kGroup);
    sub.add_flag("--cull-connected", flags.cull_connected, "Also while clients are connected")
        ->group(kGroup);
    sub.add_flag("--cull-busy", flags.cull_busy, "Also while code runs")->group(kGroup);
    sub.add_option("--kernel-cpu-cores", flags.kernel_cpu_cores, "Default: 2")->group(kGroup);
    sub.add_option("--kernel-memory-mb", flags.kernel_memory_mb, "Default: 2048")->group(kGroup);
    sub.add_option("--kernel-disk-mb", flags.kernel_disk_mb, "Size of /workspace. Default: 1024")
        ->group(kGroup);
    sub.add_option("--kernel-processes", flags.kernel_processes, "And threads. Default: 256")
        ->group(kGroup);
}

/// Sessions and interpreters made in advance, and the freezing of idle ones.
void add_pace_options(CLI::App& sub, ServeOptions& flags) {
    sub.add_option(
        "--freeze-after",
        flags.freeze_after,
        "Freeze a session that has been idle for this number of seconds, until it is used again. "
        "Default: 60; 0: never");
    sub.add_option(
        "--prespawn-count",
        flags.prespawn_count,
        "Number of sessions kept ready for agents, and the same number for Jupyter's front ends. "
        "Default: 2");
    sub.add_option(
        "--prespawn-most",
        flags.prespawn_most,
        "The server keeps as many sessions ready as were requested in the busiest second of the "
        "last ten minutes. This is the maximum, those of --prespawn-count included. Default: 64, "
        "or 0 if --prespawn-count is 0; 0: keep --prespawn-count only");
    sub.add_flag(
        "--no-zygotes",
        flags.no_zygotes,
        "Start every interpreter as a new process, not as a fork of one that has imported the "
        "usual modules");
    sub.add_option(
        "--preload",
        flags.preload,
        "Python module that is imported once for all sessions, before they start. \"usual\" stands "
        "for NumPy, pandas and matplotlib, \"none\" for no module. Repeat it for several. Default: "
        "usual");
}

void add_egress_options(CLI::App& sub, ServeOptions& flags) {
    constexpr const char* kGroup = "What sessions may reach of the network (default: nothing)";
    sub.add_option(
           "--allow-egress",
           flags.allow_egress,
           "Hosts that a session may ask for: HOST[:PORT], *.DOMAIN[:PORT] for every name below "
           "it, "
           "*:PORT for every host. Repeat it for several")
        ->group(kGroup);
    sub.add_option(
           "--egress-permit-address",
           flags.egress_permit_address,
           "Allow this address or network although it is not public: 127.0.0.1, 10.1.0.0/16. "
           "Repeat it for several")
        ->group(kGroup);
    sub.add_option(
           "--egress-resolve",
           flags.egress_resolve,
           "NAME=ADDRESS: use this address for the name, in place of the resolver's answer. Repeat "
           "it "
           "for several")
        ->group(kGroup);
    sub.add_option(
           "--package-index",
           flags.package_index,
           "Address of an index of Python packages (https://packages.example/simple/), which "
           "sessions that ask for its host may install from. Its host need not be named with "
           "--allow-egress")
        ->group(kGroup);
    sub.add_option(
           "--egress-ca",
           flags.egress_ca,
           "PEM file: certificates that are trusted besides the system's, here and in sessions")
        ->group(kGroup);
    sub.add_option(
           "--secrets",
           flags.secrets,
           "JSON file of mode 0600: secrets that sessions may use without seeing them "
           "(kernel-manager/egress/EGRESS.md)")
        ->group(kGroup);
}

void add_language_options(CLI::App& sub, ServeOptions& flags) {
    sub.add_option(
        "--kernels",
        flags.kernels,
        "Directory of languages: each folder in it with a kernel.json is offered besides those of "
        "this installation (kernels/driver/README.md). Repeat it for several");
    sub.add_option(
        "--foreign-kernels",
        flags.foreign_kernels,
        "Directory of Jupyter kernelspecs, or one of them, whose kernels are offered inside the "
        "sandbox; auto: where Jupyter looks (kernels/foreign/README.md). Repeat it for several");
}

void add_image_options(CLI::App& sub, ServeOptions& flags) {
    sub.add_option(
        "--image",
        flags.image,
        "What sessions see of the system: auto (default: a private copy, made at the first start), "
        "a digest of cellkeep image list, or host: the host's own files (needs "
        "--allow-degraded=private_image)");
    sub.add_option(
        "--while-preparing",
        flags.while_preparing,
        "What sessions run from while the private copy is made: wait (default): nothing, they wait "
        "or are refused; stale: the copy of an older state of the same environment; host: the "
        "host's own files (needs --allow-degraded=private_image)");
}

/// Besides where it listens: who may come, and how it speaks with them.
void add_access_options(CLI::App& sub, ServeOptions& flags) {
    sub.add_option(
        "--allow-host",
        flags.allow_host,
        "Accept this name in the Host header besides localhost. Repeat it for several");
    sub.add_option(
        "--allow-origin",
        flags.allow_origin,
        "Pages of this origin (https://lab.example:8443, or * for all) may use the server. Repeat "
        "it for several");
    sub.add_option("--base-url", flags.base_url, "Serve below this path. Default: /");
    sub.add_option("--tls-cert", flags.tls_cert, "PEM file: certificate and chain. Speaks HTTPS");
    sub.add_option("--tls-key", flags.tls_key, "PEM file: its key, without a passphrase");
    sub.add_flag(
        "--no-token-on-unix-socket",
        flags.no_token_on_unix_socket,
        "Processes of this user need no token on a unix: socket");
}

void add_e2b_options(CLI::App& sub, ServeOptions& flags) {
    sub.add_flag(
        "--e2b-snapshots",
        flags.e2b_snapshots,
        "Sandboxes of E2B's clients can be forked, and there are snapshots of them. They start "
        "slower, and Landlock does not say where their code may write (docs/e2b.md)");
    sub.add_flag(
        "--e2b-debug",
        flags.e2b_debug,
        "Offer the sandbox of E2B's debug mode to everyone who reaches this server, without a "
        "token. For a server that listens on loopback alone");
}

}  // namespace

void add_serve(CLI::App& app, ServeCommand& command) {
    CLI::App* sub = app.add_subcommand("serve", "Run the server");
    ServeOptions& flags = command.flags;
    sub->add_option(
        "--listen",
        flags.listen,
        "HOST:PORT or unix:PATH to listen on. Repeat it for several. Default: 127.0.0.1:8888, or "
        "the next free port");
    add_token_options(*sub, flags);
    sub->add_option(
        "--max-sessions", flags.max_sessions, "Maximum number of sessions at a time. Default: 64");
    add_pace_options(*sub, flags);
    sub->add_option(
        "--state-dir",
        flags.state_dir,
        "Private directory of this server. Default: $XDG_STATE_HOME/cellkeep or "
        "~/.local/state/cellkeep");
    sub->add_option("--config", command.config_path, "TOML file; its keys are these flags");
    sub->add_option(
        "--allow-degraded",
        flags.allow_degraded,
        "Start sessions although this sandbox control is missing (see: cellkeep doctor). Repeat it "
        "for several");
    add_image_options(*sub, flags);
    add_language_options(*sub, flags);
    sub->add_option(
        "--inputs",
        flags.inputs,
        "Directory of files that sessions may have by name (files[].from), read-only");
    add_access_options(*sub, flags);
    sub->add_flag(
        "--no-store",
        flags.no_store,
        "Remember sessions and executions only while they live, not in the state directory");
    sub->add_flag(
        "--mcp-fixtures",
        flags.mcp_fixtures,
        "Also offer the tools, prompts and resources of MCP's conformance suite. For tests only");
    sub->add_option(
        "--mcp-servers",
        flags.mcp_servers,
        "JSON file of MCP servers whose tools code in sessions may call (docs/code-mode.md). Their "
        "programs run outside the sandbox");
    sub->add_option(
        "--ready-fd",
        flags.ready_fd,
        "Write READY to this descriptor when the server listens and sessions can begin");
    sub->add_option("--zmq-transport", flags.zmq_transport, "ipc (default) or tcp");
    sub->add_option(
        "--consecutive-failures",
        flags.consecutive_failures,
        "Refuse a session's executions for a while after this number of failures in a row. A "
        "session may set another number. Default: 10; 0: never");
    add_e2b_options(*sub, flags);
    add_egress_options(*sub, flags);
    add_kernel_options(*sub, flags);
    constexpr const char* kHidden = "";  // of no person's
    sub->add_option(kTakeOverFlag, command.take_over)->group(kHidden);
    sub->add_flag(kTakeOverCheckFlag, command.take_over_check)->group(kHidden);
    sub->add_option("--log-level", flags.log_level, "debug, info (default), warning, error, off");
    sub->add_option("--log-format", flags.log_format, "json (default) or text");
}

}  // namespace cellkeep::cli
