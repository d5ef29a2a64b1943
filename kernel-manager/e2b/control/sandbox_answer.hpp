// SPDX-License-Identifier: Apache-2.0
//
// A sandbox in E2B's words. Pure, but for what it asks of the session.
#pragma once

#include "kernel-manager/e2b/control/sandbox_book.hpp"
#include "kernel-manager/e2b/wire/sandbox_tokens.hpp"
#include "kernel-manager/http/message/request.hpp"
#include "kernel-manager/session/session.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace cellkeep::e2b {

/// The version of envd whose ways this server has: the clients ask for features by it.
inline constexpr const char* kEnvdVersion = "0.6.13";

/// Whether it stands still for its client.
enum class State { kRunning, kPaused };

/// The answer to create and connect.
nlohmann::json created_json(
    const session::Session& session,
    const SandboxRecord& record,
    const SandboxTokens& tokens,
    const std::string& domain);
/// One of a list; the answer to "get" has more.
nlohmann::json listed_json(
    const session::SessionInfo& info, const SandboxRecord& record, State state);
nlohmann::json detail_json(
    const session::SessionInfo& info,
    const SandboxRecord& record,
    State state,
    const SandboxTokens& tokens,
    const std::string& domain);
/// What it uses now: CPU since the last look, which the record then notes.
Result<nlohmann::json> metrics_json(session::Session& session, SandboxRecord& record);

/// What the clients put behind "PORT-ID.": this server as the request names it. Of a loopback
/// address "localhost", for nothing stands below an address.
std::string domain_of(const http::Request& request);

}  // namespace cellkeep::e2b
