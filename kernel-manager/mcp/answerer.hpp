// SPDX-License-Identifier: Apache-2.0
//
// What answers MCP's requests: a session service of this process (front.hpp), or a server
// elsewhere. io_context thread only.
#pragma once

#include "kernel-manager/mcp/call.hpp"
#include "kernel-manager/mcp/wire/rpc.hpp"

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include <memory>
#include <variant>

namespace cellkeep::mcp {

class Answerer {
 public:
    Answerer() = default;
    Answerer(const Answerer&) = delete;
    Answerer& operator=(const Answerer&) = delete;
    virtual ~Answerer() = default;

    using Answer = std::variant<nlohmann::json, RpcError>;
    /// The result of a request, or the protocol's error. A tool that fails is a result. Ends soon
    /// after the call is cancelled.
    virtual boost::asio::awaitable<Answer> answer(std::shared_ptr<Call> call, Message message) = 0;
    /// A response of the client to what was asked elsewhere. Nothing is asked elsewhere by default.
    virtual void deliver(const Message& /*response*/) {}
    /// Where messages go that belong to no call. None by default.
    virtual void set_outlet(const Client::Outlet& /*outlet*/) {}
};

}  // namespace cellkeep::mcp
