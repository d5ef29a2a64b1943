// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/governance/gate.hpp"

namespace cellkeep::governance {

std::string_view to_string(DecisionReason reason) {
    switch (reason) {
        case DecisionReason::kRule:
            return "rule";
        case DecisionReason::kPrincipal:
            return "principal";
        case DecisionReason::kNew:
            return "new_tool";
        case DecisionReason::kChanged:
            return "changed_tool";
    }
    return "rule";
}

Decision Gate::decide(const ToolAction& action) const {
    const auto rules = rules_.find(action.server);
    if (rules == rules_.end() || !governance::may_use(rules->second, action.principal)) {
        return {Verdict::kDeny, DecisionReason::kPrincipal};
    }
    const Verdict verdict = verdict_of(rules->second, action.tool);
    if (verdict == Verdict::kDeny) {
        return {verdict, DecisionReason::kRule};
    }
    switch (reviews_.state(action.server, action.tool, action.digest)) {
        case ToolReviews::State::kReviewed:
            break;
        case ToolReviews::State::kNew:
            return {Verdict::kAsk, DecisionReason::kNew};
        case ToolReviews::State::kChanged:
            return {Verdict::kAsk, DecisionReason::kChanged};
    }
    return {verdict, DecisionReason::kRule};
}

bool Gate::may_use(const std::string& server, const std::string& principal) const {
    const auto rules = rules_.find(server);
    return rules != rules_.end() && governance::may_use(rules->second, principal);
}

bool Gate::see(
    const std::string& server, const std::string& identity, const ToolReviews::Digests& tools) {
    const auto rules = rules_.find(server);
    if (rules == rules_.end()) {
        return false;
    }
    return reviews_.take_first(
        server, identity, rules->second.reviewed ? *rules->second.reviewed : tools);
}

}  // namespace cellkeep::governance
