// SPDX-License-Identifier: Apache-2.0
//
// What the server's log says of calls of the operator's tools: a line before each and one after it,
// with digests in place of what goes and comes. Calls that were refused for being too many are only
// counted. Not thread-safe.
#pragma once

#include "kernel-manager/execution/operator_tools.hpp"
#include "kernel-manager/governance/gate.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace cellkeep::tools {

/// Which call a line is about.
struct LoggedCall {
    session::ToolCaller caller;
    std::string name;
};

class CallLog {
 public:
    /// An event for the log, by its stable name.
    using Write = std::function<void(std::string_view event, const nlohmann::json& fields)>;

    explicit CallLog(Write write) : write_(std::move(write)) {}

    void suppress() { ++suppressed_; }
    void begin(
        const LoggedCall& call, std::string_view arguments, const governance::Decision& decision);
    /// what: "asked", "approved", "denied", "expired", "withdrawn". by: a principal, or empty.
    void approval(
        const LoggedCall& call,
        const std::string& id,
        std::string_view what,
        const std::string& by) const;
    void end(
        const LoggedCall& call,
        const session::ToolOutcome& outcome,
        bool given_up,
        std::chrono::milliseconds took) const;

 private:
    Write write_;
    std::uint64_t suppressed_ = 0;
};

}  // namespace cellkeep::tools
