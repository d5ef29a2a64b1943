// SPDX-License-Identifier: Apache-2.0
//
// From a request to a place in the workspace of a session. io_context thread only.
#pragma once

#include "kernel-manager/api/routes/session_lookup.hpp"
#include "kernel-manager/http/router.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/outcome/basic_result.hpp>
#include <boost/outcome/policy/terminate.hpp>

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace cellkeep::api {

/// A value, or the answer that refuses it.
template <typename T>
using OrAnswer = BOOST_OUTCOME_V2_NAMESPACE::
    basic_result<T, http::Response, BOOST_OUTCOME_V2_NAMESPACE::policy::terminate>;

/// With a constructor, because g++ 12 miscompiles coroutines with temporaries of aggregates.
struct FilePlace {
    FilePlace(std::shared_ptr<session::Session> whose, std::string normal_path)
        : session(std::move(whose)), path(std::move(normal_path)) {}
    std::shared_ptr<session::Session> session;
    std::string path;  // as parse_workspace_path() returns it
};

/// 400 if the path is malformed or leaves the workspace.
OrAnswer<FilePlace> parse_place(
    std::shared_ptr<session::Session> session, const std::string& named);

/// Where a request names the path of a file.
enum class PathFrom {
    kAddress,  // {path...} in the route's pattern
    kQuery,    // ?path=; without it the workspace itself
};
using FileHandler =
    std::function<boost::asio::awaitable<http::Response>(http::Request&, FilePlace)>;
/// Calls `handler` with the place, as SessionLookup::with_session(). 400 if the path is malformed.
http::Handler with_place(const SessionLookup& lookup, PathFrom from, FileHandler handler);

/// Counts the request as a use of the session and opens its workspace. The answer is a 409 if the
/// session has ended.
OrAnswer<sandbox::Workspace> use_workspace(const http::Request& request, session::Session& session);

}  // namespace cellkeep::api
