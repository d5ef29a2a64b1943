// SPDX-License-Identifier: Apache-2.0
//
// What the contents API does to files: makes, saves, copies, moves and removes them. Long work goes
// in slices (contents_turns.hpp). The places are no roots and no sessions' own directories, unless
// a function says so.
#pragma once

#include "kernel-manager/jupyter/rest/contents/contents_order.hpp"
#include "kernel-manager/jupyter/rest/contents/contents_place.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include <string>

namespace cellkeep::jupyter {

/// The model without its content. Also of a session's own directory. kNotFound.
Result<nlohmann::json> describe_contents(const ContentsPlace& place);

/// Replaces a file, adds a piece to it, or makes a directory. Makes missing directories on the way.
/// kInvalidArgument: the order does not fit its type or what is there. The order's body must
/// outlive the coroutine.
boost::asio::awaitable<Status> save_contents(ContentsPlace place, ContentsOrder order);

/// Something new and empty in a directory, which may be a session's own, under a name that is free.
/// Returns its path in the workspace.
Result<std::string> make_untitled(const ContentsPlace& directory, const ContentsOrder& order);

/// Replaces or makes a file with the bytes that another has, which may be in another session.
boost::asio::awaitable<Status> copy_contents(ContentsPlace from, ContentsPlace to);
/// The name for a copy of the file in a directory, which may be a session's own: its own if that is
/// free, else with "-Copy1" and so on.
Result<std::string> name_of_copy(const ContentsPlace& from, const ContentsPlace& directory);

/// Takes the file's checkpoint along. kConflict if the new path is taken.
Status move_contents(const ContentsPlace& from, const ContentsPlace& to);
/// Removes the file's checkpoint with it. kInvalidArgument if it is a directory with more in it
/// than checkpoints.
boost::asio::awaitable<Status> remove_contents(ContentsPlace place);

}  // namespace cellkeep::jupyter
