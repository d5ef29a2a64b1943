// SPDX-License-Identifier: Apache-2.0
//
// A session's processes as the session API shows them, and their output as a body that is written
// while it comes. A place in it is a number of bytes (process/command_output.hpp), which is the
// sequence number of its events; the end has the number behind the last byte's.
#pragma once

#include "kernel-manager/api/answers/event_stream.hpp"
#include "kernel-manager/http/message/problem.hpp"
#include "kernel-manager/http/message/request.hpp"
#include "kernel-manager/http/message/response.hpp"
#include "kernel-manager/process/command.hpp"
#include "protocol/limits.hpp"

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace cellkeep::api {

nlohmann::json to_json(const process::CommandInfo& info);
/// What a session may have at once and how much of it is kept.
nlohmann::json process_limits();
http::Problem no_process(const std::string& id);

struct ProcessStream {
    std::shared_ptr<process::Command> command;
    EventFraming framing = EventFraming::kServerSent;
    std::uint64_t after = 0;  // the bytes that the client has
    std::chrono::milliseconds heartbeat = limits::kEventHeartbeat;
};
/// What there is to say now, in order: a gap, output, the end. "": nothing. Moves stream.after;
/// finished: it was the end.
std::string take_news(ProcessStream& stream, bool& finished);
/// Until the process has ended and its last event is written, or the connection is to close. A
/// reader that is behind what is kept gets a gap event that says how many bytes it missed.
boost::asio::awaitable<Status> write_process_events(http::BodyWriter& writer, ProcessStream stream);
/// The answer to GET …/events: the stream after what the client has, or 204 if it has everything.
http::Response follow_process(
    const http::Request& request, std::shared_ptr<process::Command> command);

}  // namespace cellkeep::api
