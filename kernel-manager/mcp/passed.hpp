// SPDX-License-Identifier: Apache-2.0
//
// What passes of MCP to another program in the server's process: the client sessions, the tasks
// and the key of request states. Values; pure functions.
#pragma once

#include "kernel-manager/http/access/principal.hpp"
#include "kernel-manager/mcp/tasks/tasks.hpp"
#include "kernel-manager/mcp/wire/capabilities.hpp"
#include "kernel-manager/mcp/wire/log_level.hpp"
#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::mcp {

struct PassedSubscription {
    http::Principal principal;
    std::map<std::string, std::string> seen;  // by URI: what the resource was like
};

struct PassedClient {
    std::string id;
    std::string principal;
    std::string revision;
    std::uint64_t used = 0;
    ClientCapabilities capabilities;
    std::optional<LogLevel> log_level;
    std::optional<PassedSubscription> subscription;  // nothing: it has subscribed to nothing
};

struct PassedClients {
    std::vector<PassedClient> clients;
    std::uint64_t uses = 0;
    std::vector<Task> tasks;
    std::string seal_key;  // "": nothing was sealed
};

nlohmann::json to_json(const PassedClients& passed);
/// kProtocol for another form.
Result<PassedClients> read_passed_clients(const nlohmann::json& value);

}  // namespace cellkeep::mcp
