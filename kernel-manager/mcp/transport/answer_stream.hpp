// SPDX-License-Identifier: Apache-2.0
//
// One answer as server-sent events: notifications while it is made, then the response, and comment
// lines so that what stands between does not take the connection for dead. io_context thread only.
#pragma once

#include "kernel-manager/http/message/response.hpp"
#include "kernel-manager/http/message/streaming.hpp"
#include "kernel-manager/mcp/call.hpp"

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include <functional>
#include <memory>

namespace cellkeep::mcp {

/// What happens to the request when its client goes first.
enum class OnGone { kCancel, kGoOn };

/// The head of such an answer.
http::Response begin_stream();

/// make: gives the response as a JSON-RPC message, or null for a stream that has none; it is run to
/// its end whatever becomes of the client, and ends soon after the call is cancelled.
boost::asio::awaitable<Status> write_answer(
    http::BodyWriter& writer,
    std::shared_ptr<Call> call,
    OnGone on_gone,
    std::function<boost::asio::awaitable<nlohmann::json>()> make);

}  // namespace cellkeep::mcp
