// SPDX-License-Identifier: Apache-2.0
//
// The finished executions of a session and its idempotency keys on their way from one program in
// the server's process to another: the newest, up to the bounds in passed_sessions.hpp.
#pragma once

#include "kernel-manager/session/session_executions.hpp"

#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include <cstddef>

namespace cellkeep::session {

/// About what write_executions() gives.
std::size_t bytes_of_executions(const SessionExecutions& executions);
nlohmann::json write_executions(const SessionExecutions& executions);
/// Throws json::exception for another form.
void read_executions(
    const nlohmann::json& text, boost::asio::io_context& io, SessionExecutions& executions);

}  // namespace cellkeep::session
