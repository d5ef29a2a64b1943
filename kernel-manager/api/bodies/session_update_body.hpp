// SPDX-License-Identifier: Apache-2.0
//
// The body of PATCH /v1/sessions/{id}: what is to change, checked against what is in force. Pure.
#pragma once

#include "kernel-manager/api/bodies/object_reader.hpp"
#include "kernel-manager/http/message/problem.hpp"
#include "kernel-manager/session/session_info.hpp"
#include "kernel-manager/session/session_update.hpp"

#include <nlohmann/json.hpp>

namespace cellkeep::api {

/// A merge patch (RFC 7396) of {"limits", "network", "metadata", "keep_alive"}. Fills errors; the
/// value counts only if there are none.
session::SessionUpdate parse_session_update(
    const nlohmann::json& body, const session::SessionInfo& now, FieldErrors& errors);

/// Turns what the session refused into a problem: an invalid argument becomes a 422 that points at
/// the error's field, a file that has no place in the workspace (the field "files/N") a 409 or 413
/// that points at the file.
http::Problem refused_field(const Error& error);

}  // namespace cellkeep::api
