// SPDX-License-Identifier: Apache-2.0
//
// The approvals that a run waits for while an MCP call waits for the run: who is asked, and what
// the answer decides. The client's person is asked if the principal may approve, as over
// /v1/approvals, and the client shows forms. A form that is closed, refused or lost decides
// nothing: the call of the tool waits on for an answer over /v1/approvals, and without one it is
// not made. io_context thread only.
#pragma once

#include "kernel-manager/execution/running_execution.hpp"
#include "kernel-manager/governance/approvals.hpp"
#include "kernel-manager/mcp/asking/ask.hpp"
#include "kernel-manager/mcp/call.hpp"
#include "kernel-manager/mcp/tools/run_answer.hpp"
#include "kernel-manager/mcp/tools/tool.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace cellkeep::mcp {

class RunApprovals {
 public:
    /// The bench must outlive this.
    RunApprovals(const ToolBench& bench, std::shared_ptr<Call> call);
    RunApprovals(const RunApprovals&) = delete;
    RunApprovals& operator=(const RunApprovals&) = delete;
    ~RunApprovals() = default;

    /// The run that the request was about when it was answered with a question before.
    struct Earlier {
        std::string execution_id;
        RunPlace place;
    };
    std::optional<Earlier> earlier() const;
    /// The answer that came with the request, if one did: it decides, if what it is about still
    /// waits. An error: it is no answer to what was asked.
    std::optional<RpcError> take_answer();

    /// What this client is to be asked about now; null: nothing, or it is not asked.
    const governance::Approvals::Pending* next(const session::Execution& execution) const;
    /// Asks a client with a session about next(), which is there. Returns when that is decided,
    /// here or elsewhere, or is not decided here.
    boost::asio::awaitable<void> ask(
        std::shared_ptr<session::Execution> execution, std::string session);
    /// The result that asks a client of 2026-07-28 about next(), which is there.
    boost::asio::awaitable<Answerer::Answer> ask_by_result(
        std::shared_ptr<session::Execution> execution, RunPlace place);

 private:
    bool asks() const;
    void settle(const std::string& id, const nlohmann::json& answer);

    const ToolBench& bench_;
    const std::shared_ptr<Call> call_;
    std::set<std::string> passed_;  // those that this call does not ask about again
    std::size_t asked_ = 0;         // how often it has asked, in earlier rounds too
};

}  // namespace cellkeep::mcp
