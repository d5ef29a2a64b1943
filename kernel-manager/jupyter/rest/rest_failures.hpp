// SPDX-License-Identifier: Apache-2.0
//
// What failures of the session service are to a Jupyter client. Pure.
#pragma once

#include "kernel-manager/http/message/response.hpp"
#include "protocol/support/result.hpp"

namespace cellkeep::jupyter {

/// A full server is 403 "Resource Limit", as Jupyter Kernel Gateway says it, and a bad request 400.
http::Response failure_response(const Error& error);
/// The answer to a kernel that could not be started: kNotFound is a kernel name that this server
/// does not have. For that the answer is 501 with a "message" and a "short_message", which
/// JupyterLab shows; the error's message is the name, its hint why there is no such kernel and what
/// to do, or empty. Every other error is a failure_response().
http::Response start_failure_response(const Error& error);

}  // namespace cellkeep::jupyter
