// SPDX-License-Identifier: Apache-2.0
//
// The tools that the caller of one execution lends to its code and those of the operator, and the
// call that waits for an answer. A lent tool hides one of the operator's with its name. Code asks
// one thing at a time: when it asks anew, it no longer waits for what it asked before. What the
// guest says stays bytes. Not thread-safe.
#pragma once

#include "kernel-manager/execution/operator_tools.hpp"
#include "protocol/message.hpp"
#include "protocol/raw_json.hpp"
#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::session {

struct LentTool {
    std::string name;  // words with dots between them: "github.create_issue"
    std::string description;
    nlohmann::json input_schema = nlohmann::json::object();  // JSON Schema of its arguments
};

/// What a call is answered with: a result, or why there is none.
struct ToolAnswer {
    nlohmann::json result;
    std::optional<std::string> error;
};

/// A name of a tool: words of letters, digits and underscores with dots between them, none of which
/// begins with a digit; at most limits::kToolNameBytesMax.
bool is_tool_name(std::string_view name);

/// So long a run may wait for people without its time running.
inline constexpr std::chrono::hours kHeldTimeMax{1};

class ToolCalls {
 public:
    /// Sends the content of an answer, a JSON text, to the code if that still runs.
    using Reply = std::function<void(std::string_view content)>;

    struct Call {
        std::string id;  // "tcl_1", "tcl_2", … of one execution
        std::string tool;
        protocol::RawJson arguments;  // an object
        bool is_operators = false;    // else the caller answers it
        std::string approval = {};    // a person is asked; empty: none is
    };

    /// What becomes of a call of the operator's tools. Both may be empty.
    struct Watch {
        /// Its approval has changed.
        std::function<void(const Call&)> on_held;
        /// The code has its answer.
        std::function<void(const Call&, const ToolOutcome&)> on_done;
    };

    explicit ToolCalls(
        std::vector<LentTool> tools, OperatorAccess operator_access = {}, Watch watch = {})
        : tools_(std::move(tools)),
          operator_(std::move(operator_access)),
          watch_(std::move(watch)) {}
    ToolCalls(const ToolCalls&) = delete;
    ToolCalls& operator=(const ToolCalls&) = delete;
    ~ToolCalls() = default;

    /// Content of protocol::kToolListReply, as text: the tools, or, after limits::kToolListsMax of
    /// them, a refusal.
    std::string list();

    /// Takes a protocol::kToolRequest. Returns the call that now waits, or nullopt: it was refused,
    /// and the code has been told so.
    std::optional<Call> begin(const protocol::Message& request, Reply reply);
    /// The one that waits.
    const std::optional<Call>& waiting() const { return waiting_; }

    /// Gives the code its answer, and returns the text that the code gets. kNotFound: there was no
    /// such call; kConflict: it has been answered, the code no longer waits, or it is not the
    /// caller's to answer; kLimitExceeded: the result is too large, and the call waits on.
    Result<std::string> answer(const std::string& id, const ToolAnswer& answer);
    /// The code waits no more: it has ended, or was interrupted.
    void give_up();
    /// How long calls have waited for a person until now: at most kHeldTimeMax.
    std::chrono::nanoseconds held_for(std::chrono::steady_clock::time_point now) const;

    /// None was lent, and the code has asked for none.
    bool are_unused() const { return tools_.empty() && begun_ == 0 && lists_ == 0; }

 private:
    const LentTool* find(std::string_view name) const;
    void call_operators(const std::string& name, const protocol::RawJson& arguments);
    void on_held(const std::string& approval);
    void on_done(const ToolOutcome& outcome);
    void end_hold();

    std::vector<LentTool> tools_;
    std::optional<std::string> lent_text_;  // of the tools, once the code has asked for it
    OperatorAccess operator_;
    Watch watch_;
    std::optional<Call> waiting_;
    Reply reply_;
    std::shared_ptr<void> operators_call_;  // null: none waits
    std::optional<std::chrono::steady_clock::time_point> held_since_;
    std::chrono::nanoseconds held_{0};
    std::size_t begun_ = 0;
    std::size_t lists_ = 0;
};

}  // namespace cellkeep::session
