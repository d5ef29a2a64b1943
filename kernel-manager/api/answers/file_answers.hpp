// SPDX-License-Identifier: Apache-2.0
//
// What the routes over files have in common: versions of files, conditions on them (RFC 9110,
// section 13), failures of a workspace as problems. Pure.
#pragma once

#include "kernel-manager/http/message/problem.hpp"
#include "kernel-manager/http/message/request.hpp"
#include "kernel-manager/http/message/response.hpp"
#include "kernel-manager/session/session.hpp"
#include "protocol/support/result.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::api {

/// A strong validator: the guest cannot set what it is made of, and every write changes it.
std::string etag(const sandbox::FileState& state);

/// Whether a list of entity tags ("\"a\", W/\"b\"" or "*") names this one; "" is no file.
/// kStrong: weak tags never match (RFC 9110, section 8.8.3.2).
enum class TagComparison { kStrong, kWeak };
bool names_tag(std::string_view list, std::string_view tag, TagComparison comparison);

/// Why If-Match or If-None-Match forbid a change of the file that has this tag ("" if there is
/// none): 412.
std::optional<http::Response> check_conditions(
    const http::Headers& headers, const std::string& tag);

http::Response bad_path(const Error& error);
/// A path that is not a regular file, or that a link leads out of, is a conflict with what is
/// there, not a malformed request.
http::Response file_problem(const Error& error);
/// 409 if an input is mounted there or below it: no client may change it.
std::optional<http::Response> refuse_input(
    const session::Session& session, const std::string& path);
/// A file of the workspace, or the input that is mounted there. As Workspace::open_for_reading().
Result<sandbox::Workspace::OpenedFile> open_file(
    const session::Session& session, const sandbox::Workspace& workspace, const std::string& path);
/// An entry of a listing; "read_only" if it is an input.
nlohmann::json entry_json(const session::Session& session, sandbox::Entry entry);

/// As file_problem(), for what was to be written: a path that goes on below a plain file is a
/// conflict too, not a file that is missing.
http::Problem placement_problem(const Error& error);
/// Returns the problem of a file that came with a request (an error in the field "files/N"), with
/// the pointer to it. Returns nullopt for every other error.
std::optional<http::Problem> find_file_problem(const Error& error);

}  // namespace cellkeep::api
