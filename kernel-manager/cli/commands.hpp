// SPDX-License-Identifier: Apache-2.0
//
// The commands of the `cellkeep` program. Each returns the exit code: 0 done, 1 it failed, 2 wrong
// usage, 130 interrupted.
#pragma once

#include "kernel-manager/cli/serve/serve_config.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::cli {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInterrupted = 130;

/// Flags of serve, with the environment's token and the file of --config not yet read.
struct ServeCommand {
    ServeOptions flags;
    std::optional<std::string> config_path;
    // How another server runs this program that is to be replaced by it (cli/upgrade).
    std::optional<int> take_over;  // a descriptor
    bool take_over_check = false;
};
int serve(const ServeCommand& command);

struct RunCommand {
    std::string file;
    std::optional<std::string> server_state_dir;  // --server; nothing: a session of our own
    std::optional<std::string> output;
    std::optional<std::string> figures_dir;
    std::optional<std::string> language;  // nothing: as the file says
    std::string environment = "default";
    std::vector<std::string> kernels;  // directories of languages
    bool keep_session = false;
    std::chrono::seconds timeout{300};  // per cell
    std::vector<std::string> allow_degraded;
};
int run(const RunCommand& command);

struct ConnectCommand {
    std::string session;
    std::optional<std::string> state_dir;
};
int connect(const ConnectCommand& command);

struct McpCommand {
    std::optional<std::string> server_state_dir;  // --server; nothing: sessions of our own
    std::size_t sessions_max = 16;
    std::vector<std::string> kernels;  // directories of languages
    std::vector<std::string> allow_degraded;
    std::optional<std::string> mcp_servers;  // JSON file: what code may call
};
int mcp(const McpCommand& command);

struct ExecCommand {
    std::string session;
    std::vector<std::string> argv;
    std::optional<std::string> state_dir;
    std::optional<std::string> directory;  // inside; nothing: the session's
    bool input = false;                    // stdin is sent
    bool terminal = false;                 // it has one, of the size of ours
};
/// The command's exit code, 128 and the signal's number if one ended it.
int exec(const ExecCommand& command);

enum class DoctorFormat { kTable, kJson };
int doctor(DoctorFormat format);

int version();

}  // namespace cellkeep::cli
