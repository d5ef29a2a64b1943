// SPDX-License-Identifier: Apache-2.0
//
// The configuration of `cellkeep serve`, from flags and from a TOML file with the same names
// (dashes become underscores). A flag wins over the file. An unknown key is an error: a misspelt
// limit must not be a limit that is silently not in force.
#pragma once

#include "protocol/support/result.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::cli {

/// Nothing: not said.
struct ServeOptions {
    std::optional<std::vector<std::string>>
        listen;  // HOST:PORT, unix:PATH; the file: or one string
    std::optional<std::string> token;
    std::optional<std::string> token_file;  // JSON file (http/token_file.hpp)
    std::optional<std::size_t> max_sessions;
    std::optional<std::string> state_dir;
    std::optional<std::vector<std::string>> allow_degraded;  // control names
    std::optional<std::vector<std::string>> allow_host;      // Host header names
    std::optional<std::vector<std::string>> allow_origin;    // SCHEME://HOST[:PORT], or "*"
    std::optional<std::string> base_url;
    std::optional<std::string> tls_cert;  // PEM files
    std::optional<std::string> tls_key;
    std::optional<bool> no_token_on_unix_socket;
    std::optional<bool> no_store;
    std::optional<bool> mcp_fixtures;
    std::optional<bool> e2b_snapshots;
    std::optional<bool> e2b_debug;
    std::optional<int> ready_fd;
    std::optional<std::string> inputs;                        // directory
    std::optional<std::vector<std::string>> kernels;          // directories of languages
    std::optional<std::vector<std::string>> foreign_kernels;  // of kernelspecs, or "auto"
    std::optional<std::string> image;                         // "auto", "host", a digest
    std::optional<std::string> while_preparing;               // "wait", "stale", "host"
    std::optional<std::string> zmq_transport;                 // "ipc", "tcp"
    std::optional<std::string> log_level;
    std::optional<std::string> log_format;
    /// Of sessions that do not say: after how many failing executions in a row the circuit breaker
    /// opens; 0: never.
    std::optional<std::uint32_t> consecutive_failures;
    std::optional<std::uint32_t> freeze_after;  // seconds at rest; 0: never
    // What sessions may reach of the network.
    std::optional<std::vector<std::string>> allow_egress;  // HOST:PORT, *.DOMAIN:PORT, *:PORT
    std::optional<std::vector<std::string>> egress_permit_address;  // ADDRESS[/PREFIX]
    std::optional<std::vector<std::string>> egress_resolve;         // NAME=ADDRESS
    std::optional<std::string> package_index;                       // URL
    std::optional<std::string> egress_ca;                           // PEM file
    std::optional<std::string> secrets;                             // JSON file
    std::optional<std::string> mcp_servers;                         // JSON file
    // Kernels that Jupyter front ends start.
    std::optional<std::string> default_kernel_name;
    std::optional<std::vector<std::string>> allowed_envs;  // of a client, besides KERNEL_*
    std::optional<std::uint32_t> cull_idle_timeout;        // seconds; 0: never
    std::optional<bool> cull_connected;
    std::optional<bool> cull_busy;
    std::optional<std::size_t> prespawn_count;
    std::optional<std::size_t> prespawn_most;
    std::optional<bool> no_zygotes;
    std::optional<std::vector<std::string>> preload;  // Python modules, "usual", or "none" alone
    std::optional<double> kernel_cpu_cores;
    std::optional<std::uint64_t> kernel_memory_mb;
    std::optional<std::uint64_t> kernel_disk_mb;
    std::optional<std::uint32_t> kernel_processes;
};

/// kInvalidArgument: "NAME:LINE: what is wrong".
Result<ServeOptions> parse_serve_config(std::string_view toml, std::string_view name);
Result<ServeOptions> load_serve_config(const std::string& path);

/// What `first` says, and `second` where it says nothing.
ServeOptions overlay(ServeOptions first, ServeOptions second);

}  // namespace cellkeep::cli
