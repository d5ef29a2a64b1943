// SPDX-License-Identifier: Apache-2.0
//
// What the operator says about the tools of one server: who may use them, and which calls are
// allowed, asked about or denied. Pure.
#pragma once

#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::governance {

enum class Verdict { kAllow, kAsk, kDeny };

/// "allow", "ask", "deny".
std::string_view to_string(Verdict verdict);

/// Rules of one server, and the bytes of one pattern.
inline constexpr std::size_t kToolRulesMax = 256;
inline constexpr std::size_t kToolPatternBytesMax = 128;

struct ToolRules {
    struct Rule {
        std::string pattern;  // a tool's name; a star is any text
        Verdict verdict = Verdict::kAsk;
    };
    Verdict otherwise = Verdict::kAsk;
    std::vector<Rule> rules;
    /// Owners of sessions; nullopt: all of them.
    std::optional<std::vector<std::string>> principals;
    /// SHA-256 of each tool as the operator has reviewed it; nullopt: the first list of the server
    /// counts as reviewed.
    std::optional<std::map<std::string, std::string>> reviewed;
};

/// {"default": "ask", "tools": {"create_*": "deny"}, "principals": ["analyst"],
/// "reviewed": {"search": "64 hexadecimal digits"}}: every member may be missing. kInvalidArgument,
/// also for a member that is none of these.
Result<ToolRules> parse_tool_rules(const nlohmann::json& member);

/// The rule that says most about this name: the name itself, else the pattern with most characters
/// that are no star. Of two alike the stricter one.
Verdict verdict_of(const ToolRules& rules, std::string_view tool);
bool may_use(const ToolRules& rules, std::string_view principal);

}  // namespace cellkeep::governance
