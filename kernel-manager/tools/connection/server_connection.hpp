// SPDX-License-Identifier: Apache-2.0
//
// The way to one tool server: JSON-RPC requests out, their responses back, each with a deadline.
// What comes back is bounded and masked before anybody reads it. io_context thread only.
#pragma once

#include "kernel-manager/egress/secrets/secret_mask.hpp"
#include "kernel-manager/tools/config/server_entry.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/work_thread.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace cellkeep::tools {

struct RpcRequest {
    std::int64_t id = 0;  // 0: no response is waited for
    std::string text;     // of the message, with this id
    std::chrono::milliseconds patience{0};
    /// It stands alone (2026-07-28): it is in no session, and begins none.
    bool stateless = false;
    /// What of it is repeated where the transport has headers.
    NamedTexts headers;
};

struct RpcResponse {
    nlohmann::json message;  // an object with "result" or "error"
    std::size_t bytes = 0;   // of its text
};
/// Shared, because a result may have megabytes.
using RpcAnswer = std::shared_ptr<const Result<RpcResponse>>;

RpcAnswer make_answer(Result<RpcResponse> result);

/// What connections share with their owner.
struct ConnectionParts {
    boost::asio::io_context& io;
    std::shared_ptr<WorkThread> work_thread;
    /// What the operator's entry holds of secrets.
    std::shared_ptr<const egress::SecretMask> mask;
    /// A notification or a request of the server's.
    std::function<void(const nlohmann::json& message)> on_notice;
    /// One line for the log.
    std::function<void(const std::string& line)> on_line;
    /// It is closed, and not by close().
    std::function<void(const Error& why)> on_lost;
};

class ServerConnection {
 public:
    ServerConnection() = default;
    ServerConnection(const ServerConnection&) = delete;
    ServerConnection& operator=(const ServerConnection&) = delete;
    virtual ~ServerConnection() = default;

    /// kTimeout; kUnavailable: the connection is lost or closed; kLimitExceeded: the response is
    /// too long, or too much waits to be sent; kProtocol.
    virtual boost::asio::awaitable<RpcAnswer> request(RpcRequest request) = 0;
    /// A message that is not answered. It may get lost.
    virtual void notify(std::string text) = 0;
    /// Nobody waits for this request any more. notice: the message that tells the server, unless
    /// its transport has another way.
    virtual void cancel(std::int64_t id, std::string notice) = 0;
    /// Both sides speak this revision from now on. Returns when the server has been sent the notice
    /// that says so: it takes no request before.
    virtual boost::asio::awaitable<void> begin_session(
        std::string revision, std::string notice) = 0;
    /// What waits ends with kUnavailable. No hook is called afterwards.
    virtual void close() = 0;
};

/// One message out of its text, masked: read by the work thread if it is long. kProtocol, also for
/// one that is no object.
boost::asio::awaitable<Result<RpcResponse>> read_rpc(ConnectionParts& parts, std::string text);

/// The id of a response as we make them; nullopt: it is none.
std::optional<std::int64_t> response_id(const nlohmann::json& message);

}  // namespace cellkeep::tools
