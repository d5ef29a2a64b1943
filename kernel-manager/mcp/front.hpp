// SPDX-License-Identifier: Apache-2.0
//
// The Model Context Protocol over a session service, whatever the transport: each request is
// answered by itself, in the revision that it is in. Translates; every decision about a session is
// the session service's. io_context thread only.
#pragma once

#include "kernel-manager/mcp/answerer.hpp"
#include "kernel-manager/mcp/call.hpp"
#include "kernel-manager/mcp/tools/session_names.hpp"
#include "kernel-manager/mcp/tools/tool.hpp"
#include "kernel-manager/mcp/wire/rpc.hpp"
#include "kernel-manager/service/session_service.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>
#include <vector>

namespace cellkeep::mcp {

class Front : public Answerer {
 public:
    /// All must outlive this, and this the calls.
    Front(boost::asio::io_context& io, session::SessionService& service, std::string version);
    boost::asio::awaitable<Answer> answer(std::shared_ptr<Call> call, Message message) override;

    /// Whether this server knows the method in this revision.
    static bool knows(const Message& message, Era era);
    /// Whether the answer may take as long as code runs.
    bool waits(const Message& message) const;

 private:
    Answer initialize(const Message& message) const;
    Answer discover() const;
    Answer list_tools(const Message& message) const;
    boost::asio::awaitable<Answer> call_tool(std::shared_ptr<Call> call, Message message);
    Answer read_one_resource(const Call& call, const Message& message) const;
    static Answer get_one_prompt(const Message& message);
    const Tool* find_tool(const nlohmann::json& params) const;
    nlohmann::json server_info() const;

    SessionNames names_;
    ToolBench bench_;
    std::vector<Tool> tools_;
    std::string version_;
};

}  // namespace cellkeep::mcp
