// SPDX-License-Identifier: Apache-2.0
//
// The tools: what tools.json says of each, and what runs when it is called.
#pragma once

#include "kernel-manager/governance/approvals.hpp"
#include "kernel-manager/mcp/asking/approval_question.hpp"
#include "kernel-manager/mcp/asking/state_seal.hpp"
#include "kernel-manager/mcp/call.hpp"
#include "kernel-manager/mcp/tools/session_names.hpp"
#include "kernel-manager/mcp/tools/tool_answer.hpp"
#include "kernel-manager/service/session_service.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cellkeep::mcp {

class Tasks;

/// What every tool works with. All must outlive the calls.
struct ToolBench {
    boost::asio::io_context& io;
    session::SessionService& service;
    SessionNames& names;
    StateSeal& seal;
    Tasks& tasks;
    std::shared_ptr<governance::Approvals> approvals;  // null: nothing ever waits for one
    OtherApprovers other_approvers = OtherApprovers::kApi;
};

/// The arguments have been checked against the inputSchema.
using ToolHandler =
    std::function<boost::asio::awaitable<ToolAnswer>(std::shared_ptr<Call>, nlohmann::json)>;

struct Tool {
    nlohmann::json listing;  // as tools/list shows it
    ToolHandler handler;
    bool waits = false;  // its answer may take as long as code runs
};

/// In the order of tools/list, which is that of their names. The bench must outlive them.
std::vector<Tool> make_tools(ToolBench& bench);

// The handlers, by name.
using ToolCoroutine = boost::asio::awaitable<ToolAnswer>;
ToolCoroutine run_code(ToolBench& bench, std::shared_ptr<Call> call, nlohmann::json arguments);
ToolCoroutine read_output(ToolBench& bench, std::shared_ptr<Call> call, nlohmann::json arguments);
ToolCoroutine interrupt(ToolBench& bench, std::shared_ptr<Call> call, nlohmann::json arguments);
ToolCoroutine restart(ToolBench& bench, std::shared_ptr<Call> call, nlohmann::json arguments);
ToolCoroutine read_file(ToolBench& bench, std::shared_ptr<Call> call, nlohmann::json arguments);
ToolCoroutine write_file(ToolBench& bench, std::shared_ptr<Call> call, nlohmann::json arguments);
ToolCoroutine list_files(ToolBench& bench, std::shared_ptr<Call> call, nlohmann::json arguments);
ToolCoroutine checkpoint_session(
    ToolBench& bench, std::shared_ptr<Call> call, nlohmann::json arguments);
ToolCoroutine roll_back(ToolBench& bench, std::shared_ptr<Call> call, nlohmann::json arguments);
ToolCoroutine branch_session(
    ToolBench& bench, std::shared_ptr<Call> call, nlohmann::json arguments);
ToolCoroutine list_sessions(ToolBench& bench, std::shared_ptr<Call> call, nlohmann::json arguments);
ToolCoroutine close_session(ToolBench& bench, std::shared_ptr<Call> call, nlohmann::json arguments);

}  // namespace cellkeep::mcp
