// SPDX-License-Identifier: Apache-2.0
//
// The one place that says whether an action of a session's code may happen. Today these are calls
// of the operator's tools. It decides from rules and reviews alone, never from what the session
// says of itself. Not thread-safe.
#pragma once

#include "kernel-manager/governance/tool_reviews.hpp"
#include "kernel-manager/governance/tool_rules.hpp"

#include <map>
#include <string>
#include <utility>

namespace cellkeep::governance {

struct ToolAction {
    std::string principal;  // whose session it is
    std::string server;
    std::string tool;    // as its server calls it
    std::string digest;  // of what its server says of it now
};

/// Why it decided so: stable words for log lines.
enum class DecisionReason {
    kRule,       // the operator's rule says so
    kPrincipal,  // these tools are not this principal's
    kNew,        // no person has reviewed the tool
    kChanged,    // it is not what was reviewed
};

/// "rule", "principal", "new_tool", "changed_tool".
std::string_view to_string(DecisionReason reason);

struct Decision {
    Verdict verdict = Verdict::kDeny;
    DecisionReason reason = DecisionReason::kPrincipal;
};

class Gate {
 public:
    Gate(std::map<std::string, ToolRules> rules, ToolReviews reviews)
        : rules_(std::move(rules)), reviews_(std::move(reviews)) {}

    /// A tool that is not reviewed is asked about where the rule would allow it.
    Decision decide(const ToolAction& action) const;
    /// Whether the tools of this server exist for the principal.
    bool may_use(const std::string& server, const std::string& principal) const;

    /// A server has listed its tools. Returns whether the reviews have changed.
    bool see(
        const std::string& server, const std::string& identity, const ToolReviews::Digests& tools);
    /// A person has looked at the tool.
    void review(const std::string& server, const std::string& tool, const std::string& digest) {
        reviews_.review(server, tool, digest);
    }
    const ToolReviews& reviews() const { return reviews_; }

 private:
    std::map<std::string, ToolRules> rules_;  // by server
    ToolReviews reviews_;
};

}  // namespace cellkeep::governance
