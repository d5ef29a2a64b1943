// SPDX-License-Identifier: Apache-2.0
//
// What the control plane answers when it does nothing. Pure.
#pragma once

#include "kernel-manager/http/message/request.hpp"
#include "kernel-manager/http/message/response.hpp"
#include "protocol/support/result.hpp"

#include <string>

namespace cellkeep::e2b {

/// As http::problem_from(). A kUnavailable that begins with "This server" is 501: a thing that this
/// server does not have is not there later either.
http::Response refuse(const Error& error);
/// 404: of the address's "id".
http::Response no_sandbox(const http::Request& request);

}  // namespace cellkeep::e2b
