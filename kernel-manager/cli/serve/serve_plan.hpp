// SPDX-License-Identifier: Apache-2.0
//
// What `cellkeep serve` decides before it opens anything: its flags, the environment's token and
// the file of --config, checked and completed.
#pragma once

#include "kernel-manager/cli/commands.hpp"
#include "kernel-manager/cli/log.hpp"
#include "kernel-manager/cli/serve/listening.hpp"
#include "kernel-manager/cli/serve/service_setup.hpp"
#include "kernel-manager/egress/egress_service.hpp"
#include "kernel-manager/http/access/auth.hpp"
#include "kernel-manager/jupyter/rest/rest_kernelspecs.hpp"
#include "kernel-manager/service/service.hpp"
#include "kernel-manager/session/packages/package_index.hpp"
#include "kernel-manager/session/session_options.hpp"
#include "kernel-manager/tools/config/server_entry.hpp"
#include "protocol/connection_file.hpp"
#include "protocol/support/result.hpp"

#include <optional>
#include <string>
#include <vector>

namespace cellkeep::cli {

/// Everything serve decides before it opens anything.
struct ServePlan {
    ListenPlan listening;
    std::string token;
    /// Where the operator gave the token: an option, a variable, a file. Empty: it is a random one.
    std::string token_source;
    std::vector<http::NamedToken> principals;  // besides the administrator
    std::string state_dir;
    std::size_t sessions_max = 0;
    std::uint32_t consecutive_failures = 0;
    std::chrono::seconds freeze_after{0};
    std::vector<std::string> allow_degraded;
    egress::EgressConfig egress;  // without its log and directory
    std::optional<session::PackageIndex> package_index;
    std::vector<tools::ServerEntry> tool_servers;
    bool store = true;           // in the state directory
    bool mcp_fixtures = false;   // tools of MCP's conformance suite
    bool e2b_snapshots = false;  // e2b::FrontOptions
    bool e2b_debug = false;      // on loopback only
    std::optional<int> ready_fd;
    std::string inputs;          // a directory; empty: none
    std::string image = "auto";  // service_setup.hpp
    WhilePreparing while_preparing = WhilePreparing::kWait;
    std::vector<std::string> kernels;          // directories; service_setup.hpp
    std::vector<std::string> foreign_kernels;  // directories or "auto"; service_setup.hpp
    protocol::Transport transport = protocol::Transport::kIpc;
    LogLevel log_level = LogLevel::kInfo;
    LogFormat log_format = LogFormat::kJson;
    std::string default_kernel_name = jupyter::kDefaultKernelName;
    std::vector<std::string> allowed_envs;
    session::CullRules cull;
    std::size_t prespawn_count = 0;
    std::size_t prespawn_most = 0;
    bool zygotes = true;
    std::vector<std::string> preload = {"usual"};
    session::SessionLimits kernel_limits;  // of kernels that Jupyter front ends start
};

/// passed: where sockets of the service manager listen. kInvalidArgument says which option is
/// wrong.
Result<ServePlan> make_serve_plan(
    const ServeCommand& command, const std::vector<http::ListenAddress>& passed = {});

}  // namespace cellkeep::cli
