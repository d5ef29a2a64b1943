// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/tools/connection/outgoing.hpp"

#include "protocol/json.hpp"
#include "protocol/mcp/header_value.hpp"

#include <utility>

namespace cellkeep::tools {

namespace {

using nlohmann::json;

constexpr int kMethodNotFound = -32601;

/// The client offers a server nothing: no person, no model, no directories.
json stateless_meta() {
    return {
        {"io.modelcontextprotocol/protocolVersion", kStatelessRevision},
        {"io.modelcontextprotocol/clientInfo", {{"name", "cellkeep"}, {"version", "1"}}},
        {"io.modelcontextprotocol/clientCapabilities", json::object()}};
}

RpcRequest begin_request(
    Era era, std::int64_t id, std::string_view method, std::chrono::milliseconds patience) {
    RpcRequest request;
    request.id = id;
    request.patience = patience;
    request.stateless = era == Era::kStateless;
    if (request.stateless) {
        request.headers.emplace_back("MCP-Protocol-Version", kStatelessRevision);
        request.headers.emplace_back("Mcp-Method", method);
    }
    return request;
}

}  // namespace

RpcRequest make_request(
    Era era,
    std::int64_t id,
    std::string_view method,
    json params,
    std::chrono::milliseconds patience) {
    RpcRequest request = begin_request(era, id, method, patience);
    if (request.stateless) {
        params["_meta"] = stateless_meta();
    }
    request.text = protocol::dump_json(
        {{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(params)}});
    return request;
}

RpcRequest make_call(
    Era era,
    std::int64_t id,
    const std::string& tool,
    std::string_view arguments,
    NamedTexts repeated,
    std::chrono::milliseconds patience) {
    RpcRequest request = begin_request(era, id, "tools/call", patience);
    request.text = R"({"jsonrpc":"2.0","id":)" + std::to_string(id) +
                   R"(,"method":"tools/call","params":{"name":)" + protocol::dump_json(tool) +
                   R"(,"arguments":)";
    request.text += arguments;
    if (request.stateless) {
        request.text += R"(,"_meta":)" + protocol::dump_json(stateless_meta());
        request.headers.emplace_back("Mcp-Name", protocol::encode_mcp_header(tool));
        for (auto& header : repeated) {
            request.headers.push_back(std::move(header));
        }
    }
    request.text += "}}";
    return request;
}

std::string notice_text(std::string_view method, const json& params) {
    return protocol::dump_json({{"jsonrpc", "2.0"}, {"method", method}, {"params", params}});
}

std::string reply_text(const json& request) {
    json reply = {{"jsonrpc", "2.0"}, {"id", request["id"]}};
    if (request["method"] == "ping") {
        reply["result"] = json::object();
    } else {
        reply["error"] = {
            {"code", kMethodNotFound}, {"message", "This client offers no such method."}};
    }
    return protocol::dump_json(reply);
}

}  // namespace cellkeep::tools
