// SPDX-License-Identifier: Apache-2.0
//
// The tools that the caller of one execution lends to its code, and the call that waits for the
// caller's answer. Code asks one thing at a time: when it asks anew, it no longer waits for what it
// asked before. What the guest says stays bytes. Not thread-safe.
#pragma once

#include "protocol/message.hpp"
#include "protocol/raw_json.hpp"
#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <functional>
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

/// What the code gets whose request has no caller that lends tools.
std::string no_tool_lent();

/// A name of a tool: words of letters, digits and underscores with dots between them, none of which
/// begins with a digit; at most limits::kToolNameBytesMax.
bool is_tool_name(std::string_view name);

class ToolCalls {
 public:
    /// Sends the content of an answer, a JSON text, to the code if that still runs.
    using Reply = std::function<void(std::string_view content)>;

    struct Call {
        std::string id;  // "tcl_1", "tcl_2", … of one execution
        std::string tool;
        protocol::RawJson arguments;  // an object
    };

    explicit ToolCalls(std::vector<LentTool> tools) : tools_(std::move(tools)) {}

    /// Content of protocol::kToolListReply, as text.
    std::string list() const;

    /// Takes a protocol::kToolRequest. Returns the call that now waits, or nullopt: it was refused,
    /// and the code has been told so.
    std::optional<Call> begin(const protocol::Message& request, Reply reply);
    /// The one that waits.
    const std::optional<Call>& waiting() const { return waiting_; }

    /// Gives the code its answer, and returns the text that the code gets. kNotFound: there was no
    /// such call; kConflict: it has been answered, or the code no longer waits; kLimitExceeded: the
    /// result is too large, and the call waits on.
    Result<std::string> answer(const std::string& id, const ToolAnswer& answer);
    /// The code waits no more: it has ended, or was interrupted.
    void give_up();

 private:
    const LentTool* find(std::string_view name) const;

    std::vector<LentTool> tools_;
    std::optional<Call> waiting_;
    Reply reply_;
    std::size_t begun_ = 0;
};

}  // namespace cellkeep::session
