// SPDX-License-Identifier: Apache-2.0
//
// A run whose calls of tools wait for a person, and the client that is asked about them.
#pragma once

#include "protocol/message.hpp"
#include "protocol/tool_request.hpp"
#include "tests/unit/mcp/mcp_server.hpp"

#include <boost/asio/post.hpp>
#include <catch2/catch.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cellkeep::mcp::test {

using governance::ApprovalAnswer;
using nlohmann::json;

inline const json kShowsForms = {{"elicitation", json::object()}};
inline const json kRun = {
    {"name", "run_code"}, {"arguments", {{"code", "1"}, {"session", "ses_1"}}}};

/// The operator's tool "op.create", each of whose calls waits for an approval.
class AskingTools : public session::OperatorTools {
 public:
    AskingTools(boost::asio::io_context& io, governance::Approvals& approvals)
        : io_(io), approvals_(approvals) {}

    std::string list(const session::ToolCaller& /*caller*/) override { return {}; }
    bool offers(const session::ToolCaller& /*caller*/, std::string_view name) const override {
        return name == "op.create";
    }
    std::shared_ptr<void> call(
        const session::ToolCaller& caller,
        const std::string& name,
        protocol::RawJson arguments,
        Hooks hooks) override {
        hooks_ = std::move(hooks);
        governance::ApprovalRequest request;
        request.action = {caller.principal, "op", "create", "digest"};
        request.session_id = caller.session_id;
        request.execution_id = caller.execution_id;
        request.tool = name;
        request.arguments = arguments.text();
        auto asked = approvals_.ask(
            std::move(request), [this](ApprovalAnswer answer, const std::string& by) {
                words.emplace_back(answer, by);
                // As the broker does: later, in a turn of its own.
                boost::asio::post(io_, [this, answer] { go_on(answer); });
            });
        REQUIRE(asked.has_value());
        id = asked.value().id;
        return std::move(asked.value().held);
    }
    void hold() const { hooks_.on_held(id); }

    std::string id;
    std::vector<std::pair<ApprovalAnswer, std::string>> words;

 private:
    void go_on(ApprovalAnswer answer) const {
        const auto done = hooks_.on_done;
        if (answer == ApprovalAnswer::kApproved) {
            hooks_.on_approved();
        }
        done({R"({"status":"ok","result":1})", false});
    }

    boost::asio::io_context& io_;
    governance::Approvals& approvals_;
    Hooks hooks_;
};

/// A session whose code calls the tool, and ends with the answer of its last call.
struct Waiting {
    explicit Waiting(int calls = 1) : calls_left(calls) {
        session->finishes = false;
        session->operator_access = {tools, {"ses_1", "exe_1", "admin"}};
    }
    void call_tool() {
        const auto execution = session->executions.back();
        const auto request = protocol::Message::make(
            protocol::Channel::kStdin,
            protocol::make_header(std::string(protocol::kToolRequest), "kernel", "k"),
            json::object(),
            {{"name", "op.create"}, {"arguments", {{"title", "t"}}}});
        // The execution owns its calls: a call that owned it in turn would keep both for ever.
        const std::weak_ptr<session::Execution> weak = execution;
        execution->ask_tool(request, [this, weak](std::string_view /*content*/) {
            boost::asio::post(server.backend.io, [this, weak] {
                const auto running = weak.lock();
                REQUIRE(running != nullptr);
                if (--calls_left > 0) {
                    call_tool();
                } else {
                    running->finish(session->answer_of(*running));
                }
            });
        });
        tools->hold();
    }
    void run_loop() {
        server.backend.io.restart();
        (void)server.backend.io.poll();
    }
    /// A request of 2026-07-28, during which the code calls the tool if it is the first.
    json stateless(json params, const Fields& fields = {}, const json& shows = kShowsForms) {
        if (session->executions.empty()) {
            server.meanwhile = [this] { call_tool(); };
        }
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = shows;
        return server.call("tools/call", std::move(params), fields).message();
    }
    json first() { return stateless(kRun).at("result"); }
    static json again(const json& state, const json& answer) {
        json params = kRun;
        params["requestState"] = state;
        params["inputResponses"] = {{"approval", answer}};
        return params;
    }
    std::vector<std::string> said() const {
        std::vector<std::string> texts;
        for (const auto& [answer, by] : tools->words) {
            texts.push_back(std::string(to_string(answer)) + " by " + by);
        }
        return texts;
    }
    void expire() {
        (void)server.approvals->settle(tools->id, ApprovalAnswer::kExpired, "").has_value();
        run_loop();
    }

    McpServer server;
    std::shared_ptr<FakeSession> session = server.backend.add();
    std::shared_ptr<AskingTools> tools =
        std::make_shared<AskingTools>(server.backend.io, *server.approvals);
    int calls_left;
};

inline json decide(const char* decision) {
    return {{"action", "accept"}, {"content", {{"decision", decision}}}};
}
inline const json kApproves = decide("approve");
using Words = std::vector<std::string>;

/// A client session that is asked in the stream of its call.
struct InStream : Waiting {
    explicit InStream(int calls = 1) : Waiting(calls) {}
    /// What comes of run_code; `then` happens when the client has been asked.
    McpServer::Answer run(const std::function<void()>& then, const Fields& fields = {}) {
        server.meanwhile = [this, then] {
            call_tool();
            run_loop();
            then();
            run_loop();
        };
        return server.in_session(id, "tools/call", kRun, fields);
    }
    void reply(const json& reply, const std::string& question) {
        json message = reply;
        message["jsonrpc"] = "2.0";
        message["id"] = question;
        CHECK(server.ask("POST", message.dump(), {{"Mcp-Session-Id", id}}).status == 202);
    }
    static std::vector<std::string> methods(const McpServer::Answer& answer) {
        std::vector<std::string> names;
        for (const json& event : answer.events) {
            names.push_back(event.value("method", "response"));
        }
        return names;
    }
    void finish() {
        const auto execution = session->executions.back();
        execution->end_tool_calls();
        execution->finish(session->answer_of(*execution));
    }
    const std::string id = server.begin("2025-11-25", {}, kShowsForms);
};

}  // namespace cellkeep::mcp::test
