// SPDX-License-Identifier: Apache-2.0
//
// The checkpoint of a file: a copy that JupyterLab makes when a person saves, and can go back to.
// Each file has one, kCheckpointId, in the workspace (contents_model.hpp).
#pragma once

#include "kernel-manager/http/message/request.hpp"
#include "kernel-manager/http/message/response.hpp"
#include "kernel-manager/jupyter/rest/contents/contents_place.hpp"

#include <boost/asio/awaitable.hpp>

#include <optional>
#include <string>

namespace cellkeep::jupyter {

/// "PATH/checkpoints" or "PATH/checkpoints/ID".
struct CheckpointAddress {
    std::string path;
    std::string id;  // "" is all of them
};
std::optional<CheckpointAddress> find_checkpoint_address(const std::string& path);

/// GET lists them, POST makes one, POST with an id goes back to it, DELETE with an id removes it.
boost::asio::awaitable<http::Response> serve_checkpoints(
    std::string method, ContentsPlace place, std::string id);

}  // namespace cellkeep::jupyter
