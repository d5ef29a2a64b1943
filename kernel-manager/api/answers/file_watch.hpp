// SPDX-License-Identifier: Apache-2.0
//
// What happens to the files of a session, as events of a stream (event_stream.hpp): "ready" first,
// then "created", "written", "removed", "renamed", "attributes"; "missed" when there were more than
// could be kept; "end" with its reason. They have no sequence numbers: nothing is kept for a reader
// that comes back. io_context thread only.
#pragma once

#include "kernel-manager/api/answers/event_stream.hpp"
#include "kernel-manager/execution/watch/tree_watch.hpp"
#include "kernel-manager/http/message/request.hpp"
#include "kernel-manager/http/message/response.hpp"
#include "kernel-manager/session/session.hpp"
#include "protocol/limits.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace cellkeep::api {

struct FileWatchStream {
    std::weak_ptr<session::Session> session;
    std::shared_ptr<session::TreeWatch> watch;
    std::string path;
    EventFraming framing = EventFraming::kServerSent;
    std::chrono::milliseconds heartbeat = limits::kEventHeartbeat;
};

/// Until the directory or the session is gone, which is seen at the next event or heartbeat.
boost::asio::awaitable<Status> write_file_events(http::BodyWriter& writer, FileWatchStream stream);

/// Whether ?watch asks for events instead of a listing. nullopt: it is neither true nor false.
std::optional<bool> asks_for_events(const http::Request& request);
/// The answer to GET …/files?watch: the stream, or 404, 406, 409, 429 or 503.
boost::asio::awaitable<http::Response> watch_files(
    http::Request& request, std::shared_ptr<session::Session> session, std::string path);

}  // namespace cellkeep::api
