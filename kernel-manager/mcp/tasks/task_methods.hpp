// SPDX-License-Identifier: Apache-2.0
//
// tasks/get, tasks/update and tasks/cancel. What a task says is looked up when it is asked for: its
// run goes on by itself. io_context thread only.
#pragma once

#include "kernel-manager/mcp/answerer.hpp"
#include "kernel-manager/mcp/tasks/tasks.hpp"
#include "kernel-manager/mcp/tools/tool.hpp"

#include <optional>
#include <variant>

namespace cellkeep::mcp {

class TaskMethods {
 public:
    /// The bench must outlive this.
    explicit TaskMethods(ToolBench& bench) : bench_(bench) {}

    /// The message is one of the three. kMissingCapability if the client does not declare tasks;
    /// kInvalidParams if there is no such task of its principal's.
    Answerer::Answer answer(const Call& call, const Message& message);
    /// Of a subscriptions/listen that is about tasks. Their changes are not told, but who does not
    /// declare them may not even ask.
    static std::optional<RpcError> refuse_listening(const Call& call, const Message& message);

 private:
    struct Found;
    Answerer::Answer get(const Found& found, const Call& call);
    /// Answers of the client's person to what get() asked. What no longer waits for one is left as
    /// it is. kInvalidParams: it is no answer.
    Answerer::Answer update(const Found& found, const Call& call, const Message& message);
    /// Interrupts the run. A task that is over stays as it is.
    static Answerer::Answer cancel(const Found& found);
    std::variant<Found, RpcError> find(const Call& call, const Message& message);
    const governance::Approvals::Pending* question(const Found& found, const Call& call) const;

    ToolBench& bench_;
};

}  // namespace cellkeep::mcp
