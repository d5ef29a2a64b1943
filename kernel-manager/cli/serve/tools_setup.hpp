// SPDX-License-Identifier: Apache-2.0
//
// The operator's tool servers as `cellkeep serve` runs them: what makes their connections, and what
// goes through them as lines of the log.
#pragma once

#include "kernel-manager/egress/dial/resolver.hpp"
#include "kernel-manager/governance/approvals.hpp"
#include "kernel-manager/tools/config/server_entry.hpp"
#include "kernel-manager/tools/tool_broker.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/io_context.hpp>

#include <memory>
#include <string>
#include <vector>

namespace cellkeep::cli {

/// Stops them when it goes.
class ToolsSetup {
 public:
    /// directory: private. Nothing runs yet. certificates: PEM, trusted besides the system's.
    static Result<std::unique_ptr<ToolsSetup>> create(
        boost::asio::io_context& io,
        std::vector<tools::ServerEntry> entries,
        const std::string& certificates,
        const std::string& directory);
    ToolsSetup(const ToolsSetup&) = delete;
    ToolsSetup& operator=(const ToolsSetup&) = delete;
    ~ToolsSetup() { stop(); }

    /// Null if the operator names no server.
    const std::shared_ptr<tools::ToolBroker>& broker() const { return broker_; }
    /// Null as the broker.
    const std::shared_ptr<governance::Approvals>& approvals() const { return approvals_; }
    void start();
    void stop();

 private:
    ToolsSetup() = default;

    std::shared_ptr<egress::Resolver> resolver_;
    std::shared_ptr<governance::Approvals> approvals_;
    std::shared_ptr<tools::ToolBroker> broker_;
};

}  // namespace cellkeep::cli
