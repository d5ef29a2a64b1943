// SPDX-License-Identifier: Apache-2.0
//
// What failures of files are to a client of the contents API. Pure.
#pragma once

#include "kernel-manager/http/message/response.hpp"
#include "protocol/support/result.hpp"

namespace cellkeep::jupyter {

/// 404 kNotFound, 400 kInvalidArgument, 403 kPermissionDenied, 409 kConflict, 413 kLimitExceeded,
/// and the rest as http::problem_from(). Clients show the text.
http::Response contents_failure(const Error& error);

}  // namespace cellkeep::jupyter
