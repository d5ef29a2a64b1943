// SPDX-License-Identifier: Apache-2.0
//
// What the routes of sessions and executions answer when they refuse. Pure.
#pragma once

#include "kernel-manager/http/message/request.hpp"
#include "kernel-manager/http/message/response.hpp"
#include "kernel-manager/session/session.hpp"
#include "protocol/support/result.hpp"

namespace cellkeep::api {

/// 404 for a session that does not exist, or not for this principal.
http::Response unknown_session(const http::Request& request);
/// 404 for an execution that is not known, or not to this principal.
http::Response unknown_execution(const http::Request& request);
/// 400 for a page that begins after an execution which is not remembered.
http::Response unknown_cursor();
/// Why an execution was not accepted. session: the one that refused it; null for none.
http::Response refuse_execution(const Error& error, const session::Session* session);
/// 204 for a success; 404 if the execution is unknown, 409 if it has finished.
http::Response answer_interrupt(const http::Request& request, const Status& interrupted);

}  // namespace cellkeep::api
