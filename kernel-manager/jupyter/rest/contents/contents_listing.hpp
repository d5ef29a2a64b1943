// SPDX-License-Identifier: Apache-2.0
//
// The directories of a workspace, read and described a slice at a time (contents_turns.hpp).
#pragma once

#include "kernel-manager/http/message/response.hpp"
#include "kernel-manager/jupyter/rest/contents/contents_place.hpp"
#include "protocol/support/result.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace cellkeep::jupyter {

/// As Workspace::list().
boost::asio::awaitable<Result<std::vector<sandbox::Entry>>> list_in_slices(
    sandbox::Workspace workspace, std::string path);

/// The model of a directory with what is in it. model: without it.
boost::asio::awaitable<http::Response> list_directory(ContentsPlace place, nlohmann::json model);

}  // namespace cellkeep::jupyter
