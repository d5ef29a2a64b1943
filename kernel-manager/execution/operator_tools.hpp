// SPDX-License-Identifier: Apache-2.0
//
// Tools that the operator of the server gives to the code of sessions, as an execution sees them.
// What runs a tool, and what decides whether it runs, is behind this interface. io_context thread
// only.
#pragma once

#include "kernel-manager/execution/tool_result_files.hpp"
#include "protocol/raw_json.hpp"
#include "protocol/support/result.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::session {

/// Whose code asks. The guest cannot choose any of it.
struct ToolCaller {
    std::string session_id;
    std::string execution_id;  // empty: a Jupyter client's request
    std::string principal;     // the owner of the session
};

/// Where a result goes that is too long for a reply; null: nowhere.
using FindResultFiles = std::function<std::shared_ptr<ToolResultFiles>()>;

struct ToolOutcome {
    std::string content;  // of a protocol::kToolReply, as text
    bool failed = false;  // its status is "error"
    /// The result, if it is too long for the reply.
    std::optional<ToolFile> file = {};
};

class OperatorTools {
 public:
    /// None is called inside call(), or after what call() returned was let go. Each may be empty
    /// but on_done.
    struct Hooks {
        /// A person is asked whether the call may be made.
        std::function<void(const std::string& approval_id)> on_held;
        /// The person has said yes.
        std::function<void()> on_approved;
        /// Once, as the last.
        std::function<void(ToolOutcome)> on_done;
        FindResultFiles result_files = nullptr;
    };

    OperatorTools() = default;
    OperatorTools(const OperatorTools&) = delete;
    OperatorTools& operator=(const OperatorTools&) = delete;
    virtual ~OperatorTools() = default;

    /// Those that this caller may use: JSON objects as in protocol::kToolListReply, with commas
    /// between them.
    virtual std::string list(const ToolCaller& caller) = 0;
    virtual bool offers(const ToolCaller& caller, std::string_view name) const = 0;
    /// Precondition: it is offered. arguments: an object. The code waits as long as what this
    /// returns lives; afterwards the call is given up.
    [[nodiscard]] virtual std::shared_ptr<void> call(
        const ToolCaller& caller,
        const std::string& name,
        protocol::RawJson arguments,
        Hooks hooks) = 0;
};

/// The way of one execution to them. tools may be null: there are none.
struct OperatorAccess {
    std::shared_ptr<OperatorTools> tools;
    ToolCaller caller;
    FindResultFiles result_files = nullptr;
};

}  // namespace cellkeep::session
