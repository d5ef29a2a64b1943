// SPDX-License-Identifier: Apache-2.0
//
// What branches go on from, for the routes that make them.
#pragma once

#include "kernel-manager/api/bodies/branch_body.hpp"
#include "kernel-manager/checkpoint/checkpoint.hpp"
#include "kernel-manager/http/message/problem.hpp"
#include "kernel-manager/session/session.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::api {

struct BranchStart {
    std::optional<http::Problem> problem;  // then there is nothing else here
    std::string checkpoint;
    std::vector<std::string> evicted;  // that had to go for one of now
};
/// The checkpoint that is named, or one of now.
boost::asio::awaitable<BranchStart> find_start(
    std::shared_ptr<session::Session> parent,
    std::optional<std::string> from,
    checkpoint::OnThreads on_threads);

/// The same of a session that a request names besides its own, if it can be branched. parent: null
/// if there is none.
boost::asio::awaitable<BranchStart> find_state(
    std::shared_ptr<session::Session> parent, StateOrder wanted);

/// Why there is no branch of that checkpoint.
http::Problem explain_refusal(
    const Error& error, const session::Session& parent, const std::string& from);

}  // namespace cellkeep::api
