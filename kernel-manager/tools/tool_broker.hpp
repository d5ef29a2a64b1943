// SPDX-License-Identifier: Apache-2.0
//
// The operator's tools for the code of sessions: which there are for whom, and each call past the
// gate to its server. Writes a log line before a call and one after it. io_context thread only.
#pragma once

#include "kernel-manager/execution/operator_tools.hpp"
#include "kernel-manager/governance/approvals.hpp"
#include "kernel-manager/governance/gate.hpp"
#include "kernel-manager/tools/call_log.hpp"
#include "kernel-manager/tools/call_rate.hpp"
#include "kernel-manager/tools/tool_server.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/work_thread.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::tools {

class ToolBroker final : public session::OperatorTools,
                         public std::enable_shared_from_this<ToolBroker> {
 public:
    struct Config {
        std::vector<ServerEntry> entries;
        ToolServer::Connect connect;
        /// Who is asked; null: nobody.
        std::shared_ptr<governance::Approvals> approvals = nullptr;
        /// Of the state directory: where reviews are kept.
        std::string reviews_path;
        CallLog::Write log;
    };

    /// As ToolReviews::load().
    static Result<std::shared_ptr<ToolBroker>> create(boost::asio::io_context& io, Config config);
    ToolBroker(const ToolBroker&) = delete;
    ToolBroker& operator=(const ToolBroker&) = delete;
    ~ToolBroker() override = default;

    void start();
    /// Ends the servers. Calls that wait end as their servers do.
    void stop();

    std::string list(const session::ToolCaller& caller) override;
    bool offers(const session::ToolCaller& caller, std::string_view name) const override;
    std::shared_ptr<void> call(
        const session::ToolCaller& caller,
        const std::string& name,
        protocol::RawJson arguments,
        Hooks hooks) override;

 private:
    struct Call;
    struct Found {
        std::shared_ptr<ToolServer> server;
        const ServerTool* tool = nullptr;
    };

    ToolBroker(boost::asio::io_context& io, Config config, governance::Gate gate);
    Found find(const session::ToolCaller& caller, std::string_view name) const;
    governance::Decision decide(
        const session::ToolCaller& caller, const ToolServer& server, const ServerTool& tool) const;
    void on_tools(const ToolServer& server);
    void on_reviews();
    std::string make_list(const session::ToolCaller& caller) const;
    static boost::asio::awaitable<void> run(
        std::shared_ptr<ToolBroker> self, std::shared_ptr<Call> call);
    boost::asio::awaitable<session::ToolOutcome> carry_out(std::shared_ptr<Call> call);
    boost::asio::awaitable<std::optional<session::ToolOutcome>> await_approval(
        std::shared_ptr<Call> call, governance::ApprovalRequest request);
    boost::asio::awaitable<session::ToolOutcome> send(
        std::shared_ptr<Call> call, std::string digest);

    boost::asio::io_context& io_;
    const Config config_;
    const std::shared_ptr<WorkThread> work_thread_ = std::make_shared<WorkThread>();
    governance::Gate gate_;
    CallRate rate_;
    CallLog log_;
    /// What list() makes, by principal: code may ask for it all the time.
    std::map<std::string, std::string> lists_;
    std::vector<std::shared_ptr<ToolServer>> servers_;
};

}  // namespace cellkeep::tools
