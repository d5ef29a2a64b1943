// SPDX-License-Identifier: Apache-2.0
//
// The revisions of MCP that this server speaks, and which of them a request is in. Since 2026-07-28
// every request says so itself; before, the handshake did, for a client's whole session. Pure.
#pragma once

#include "kernel-manager/mcp/wire/capabilities.hpp"
#include "kernel-manager/mcp/wire/log_level.hpp"
#include "kernel-manager/mcp/wire/rpc.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace cellkeep::mcp {

enum class Era {
    kSession,    // 2025-11-25 and before: initialize, then requests
    kStateless,  // 2026-07-28: every request stands alone
};

inline constexpr std::string_view kStatelessRevision = "2026-07-28";
/// What HTTP clients speak that name no revision.
inline constexpr std::string_view kUnnamedRevision = "2025-03-26";

/// All of them, newest first.
const std::vector<std::string>& revisions();
bool is_session_revision(std::string_view revision);
/// What a client that wants `asked` in initialize gets: that, if it is one of the sessions'
/// revisions, else the newest of those.
std::string negotiate(std::string_view asked);

/// In which revision a request is answered, and what its client can and wants.
struct Peer {
    Era era = Era::kSession;
    std::string revision{kUnnamedRevision};
    ClientCapabilities capabilities;
    std::optional<LogLevel> log_level;  // nothing: it wants no log
};

/// The stateless revision, if the request's own _meta or the header of its transport says so;
/// nothing: it belongs to a session. An error names what is missing or not supported.
/// header: the value of MCP-Protocol-Version; "" without one.
std::variant<std::optional<Peer>, RpcError> read_peer(
    const Message& message, std::string_view header);

/// The error's code is the era's.
RpcError no_such_resource(Era era, const std::string& uri);

/// The progress token of a request; null if it has none. kInvalidParams if it is none.
std::variant<nlohmann::json, RpcError> read_progress_token(const Message& message);

}  // namespace cellkeep::mcp
