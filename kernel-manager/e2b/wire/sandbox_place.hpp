// SPDX-License-Identifier: Apache-2.0
//
// Which port of which sandbox a request is for. E2B's clients say it in three ways: two headers,
// the host "PORT-ID.NAME", or an address of their own, "/e2b/ID/PORT/…", to which the other two are
// brought. Pure.
#pragma once

#include "kernel-manager/http/message/request.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::e2b {

/// What a sandbox's own service listens on in E2B's cloud.
inline constexpr std::uint16_t kEnvdPort = 49983;
inline constexpr std::uint16_t kInterpreterPort = 49999;
/// The first segment of addresses within a sandbox.
inline constexpr std::string_view kSandboxSegment = "e2b";

/// A sandbox's id is its session's without "ses_": an underscore may not stand in a host name. The
/// session's own id is taken too. Returns nullopt for every other text.
std::optional<std::string> session_id_of(std::string_view sandbox_id);
std::string sandbox_id_of(std::string_view session_id);

/// Puts "/e2b/ID/PORT" before the path if the Host names a port of a sandbox. Returns whether it
/// does.
bool enter_by_host(http::Request& request);
/// The same for the headers E2b-Sandbox-Id and E2b-Sandbox-Port.
void enter_by_header(http::Request& request);

}  // namespace cellkeep::e2b
