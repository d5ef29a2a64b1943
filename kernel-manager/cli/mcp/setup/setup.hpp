// SPDX-License-Identifier: Apache-2.0
//
// `cellkeep mcp install` and `cellkeep mcp remove`.
#pragma once

#include <optional>
#include <string>

namespace cellkeep::cli {

struct McpSetupCommand {
    bool remove = false;
    std::string client;  // a name of client_programs()
    std::string name = "cellkeep";
    std::optional<std::string> file;              // nothing: where the program looks
    std::optional<std::string> server_state_dir;  // as for `cellkeep mcp`
    std::optional<std::string> mcp_servers;       // as for `cellkeep mcp`
    bool yes = false;                             // asks nothing
};
/// The exit code.
int set_up_mcp(const McpSetupCommand& command);

}  // namespace cellkeep::cli
