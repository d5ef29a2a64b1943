// SPDX-License-Identifier: Apache-2.0
//
// A session's network on its way from one program in the server's process to another: its proxy
// (egress/passing/passed_proxy.hpp), and the variables that lead its programs there. io_context
// thread only.
#pragma once

#include "kernel-manager/egress/tls/tls_authority.hpp"
#include "kernel-manager/session/passing/passed_sessions.hpp"
#include "kernel-manager/session/session_setup.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <optional>
#include <vector>

namespace cellkeep::session {

/// Of one session.
inline constexpr std::size_t kNetworkVariablesMax = 64;

/// About how many bytes write_network() gives.
std::size_t bytes_of_network(const SessionSetup& setup);
/// Null without a network. The proxy is given away, its descriptors are put in.
nlohmann::json write_network(const SessionSetup& setup, std::vector<UniqueFd>& fds);
/// Puts in the network that was passed, as far as this server's operator allows it; what is taken
/// away is said in the log. If it is not of the form, or this server gives none, the session goes
/// on without one, and the log has the reason.
void read_network(PassedSession& passed, SessionSetup& setup);

/// What all sessions with secrets trust; null: nothing.
nlohmann::json write_authority(const std::optional<egress::TlsAuthority::Passed>& authority);
/// kProtocol for another form.
Result<std::optional<egress::TlsAuthority::Passed>> read_authority(const nlohmann::json& text);

}  // namespace cellkeep::session
