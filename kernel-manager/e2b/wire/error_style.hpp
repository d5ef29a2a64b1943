// SPDX-License-Identifier: Apache-2.0
//
// Problems as E2B's clients read them. Pure.
#pragma once

#include "kernel-manager/http/message/request.hpp"
#include "kernel-manager/http/message/response.hpp"

#include <string>
#include <string_view>

namespace cellkeep::e2b {

/// {"code": STATUS, "message": …}, with "error_code" and Should-Retry where the clients know them.
/// Every other response stays as it is.
void rewrite_for_control(const http::Request& request, http::Response& response);
/// The same for addresses within a sandbox; those of RPCs get the error of the Connect protocol.
void rewrite_for_sandbox(const http::Request& request, http::Response& response);

/// The name of an error in the Connect protocol that has this status.
std::string_view connect_code(int status);

/// What the proxy before E2B's sandboxes says of one that is not there, or is paused: the clients
/// look for the words.
http::Response sandbox_not_found(const http::Request& request);

}  // namespace cellkeep::e2b
