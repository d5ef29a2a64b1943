// SPDX-License-Identifier: Apache-2.0
//
// What is sent to a tool server, in the form of its era. Pure.
#pragma once

#include "kernel-manager/tools/config/server_entry.hpp"
#include "kernel-manager/tools/connection/server_connection.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace cellkeep::tools {

enum class Era {
    kSession,    // 2025-11-25 and before: a handshake, then requests
    kStateless,  // 2026-07-28: every request stands alone and says its revision
};

inline constexpr std::string_view kStatelessRevision = "2026-07-28";
/// What a handshake may agree on; what we propose is the first.
inline constexpr std::array<std::string_view, 4> kSessionRevisions = {
    "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};

/// params: an object.
RpcRequest make_request(
    Era era,
    std::int64_t id,
    std::string_view method,
    nlohmann::json params,
    std::chrono::milliseconds patience);

/// Of tools/call. arguments: JSON, which stays the bytes that it is. repeated: the headers that
/// repeat some of them.
RpcRequest make_call(
    Era era,
    std::int64_t id,
    const std::string& tool,
    std::string_view arguments,
    NamedTexts repeated,
    std::chrono::milliseconds patience);

std::string notice_text(std::string_view method, const nlohmann::json& params);

/// What a server with a session gets that asks something of us: that we are there. The rest we
/// cannot do. request: it has an id.
std::string reply_text(const nlohmann::json& request);

}  // namespace cellkeep::tools
