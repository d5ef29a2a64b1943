// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/governance/tool_rules.hpp"

#include "protocol/json.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::governance {

namespace {

using nlohmann::json;

constexpr std::size_t kDigestDigits = 64;
constexpr std::size_t kPrincipalsNamedMax = 256;

Error refuse_rules(const std::string& where, const std::string& why) {
    return {ErrorCode::kInvalidArgument, where + ": " + why};
}

Result<Verdict> read_verdict(const json& value, const std::string& where) {
    for (const Verdict verdict : {Verdict::kAllow, Verdict::kAsk, Verdict::kDeny}) {
        if (value == to_string(verdict)) {
            return verdict;
        }
    }
    return refuse_rules(where, R"(must be "allow", "ask" or "deny")");
}

bool is_hex_digest(const json& value) {
    if (!value.is_string()) {
        return false;
    }
    const auto& text = value.get_ref<const std::string&>();
    return text.size() == kDigestDigits &&
           text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

Status read_patterns(const json& value, ToolRules& rules) {
    if (!value.is_object() || value.size() > kToolRulesMax) {
        return refuse_rules(
            "tools", "must be an object with at most " + std::to_string(kToolRulesMax) + " rules");
    }
    for (const auto& [pattern, word] : value.items()) {
        if (pattern.empty() || pattern.size() > kToolPatternBytesMax) {
            return refuse_rules(
                "tools",
                "a pattern must have 1 to " + std::to_string(kToolPatternBytesMax) + " bytes");
        }
        BOOST_OUTCOME_TRY(const Verdict verdict, read_verdict(word, "tools/" + pattern));
        rules.rules.push_back({pattern, verdict});
    }
    return ok();
}

Status read_principals(const json& value, ToolRules& rules) {
    const bool texts =
        value.is_array() && value.size() <= kPrincipalsNamedMax &&
        std::all_of(value.begin(), value.end(), [](const json& one) { return one.is_string(); });
    if (!texts) {
        return refuse_rules("principals", "must be a list of names");
    }
    rules.principals = value.get<std::vector<std::string>>();
    return ok();
}

Status read_reviewed(const json& value, ToolRules& rules) {
    const bool digests = value.is_object() && value.size() <= kToolRulesMax &&
                         std::all_of(value.begin(), value.end(), is_hex_digest);
    if (!digests) {
        return refuse_rules("reviewed", "must be an object of SHA-256 digests, by tool");
    }
    rules.reviewed = value.get<std::map<std::string, std::string>>();
    return ok();
}

/// Linear in the text for each star: a star that matched too little takes one character more.
bool matches(std::string_view pattern, std::string_view text) {
    std::size_t at = 0;
    std::size_t star = std::string_view::npos;
    std::size_t resume = 0;
    std::size_t i = 0;
    while (i < text.size()) {
        if (at < pattern.size() && pattern[at] == '*') {
            star = at++;
            resume = i;
        } else if (at < pattern.size() && pattern[at] == text[i]) {
            ++at;
            ++i;
        } else if (star != std::string_view::npos) {
            at = star + 1;
            i = ++resume;
        } else {
            return false;
        }
    }
    return pattern.find_first_not_of('*', at) == std::string_view::npos;
}

/// How much a pattern says: all of it without a star, else its other characters.
std::size_t weight_of(std::string_view pattern) {
    const auto stars = static_cast<std::size_t>(std::count(pattern.begin(), pattern.end(), '*'));
    return stars == 0 ? std::string_view::npos : pattern.size() - stars;
}

}  // namespace

std::string_view to_string(Verdict verdict) {
    switch (verdict) {
        case Verdict::kAllow:
            return "allow";
        case Verdict::kAsk:
            return "ask";
        case Verdict::kDeny:
            return "deny";
    }
    return "deny";
}

Result<ToolRules> parse_tool_rules(const json& member) {
    ToolRules rules;
    if (!member.is_object()) {
        return refuse_rules("cellkeep", "must be an object");
    }
    for (const auto& [name, value] : member.items()) {
        if (name == "default") {
            BOOST_OUTCOME_TRY(rules.otherwise, read_verdict(value, name));
        } else if (name == "tools") {
            BOOST_OUTCOME_TRY(read_patterns(value, rules));
        } else if (name == "principals") {
            BOOST_OUTCOME_TRY(read_principals(value, rules));
        } else if (name == "reviewed") {
            BOOST_OUTCOME_TRY(read_reviewed(value, rules));
        } else {
            return refuse_rules(protocol::dump_json(name), "is not a member that is known here");
        }
    }
    return rules;
}

Verdict verdict_of(const ToolRules& rules, std::string_view tool) {
    Verdict verdict = rules.otherwise;
    std::optional<std::size_t> most;
    for (const ToolRules::Rule& rule : rules.rules) {
        if (!matches(rule.pattern, tool)) {
            continue;
        }
        const std::size_t weight = weight_of(rule.pattern);
        if (!most || weight > *most || (weight == *most && rule.verdict > verdict)) {
            most = weight;
            verdict = rule.verdict;
        }
    }
    return verdict;
}

bool may_use(const ToolRules& rules, std::string_view principal) {
    return !rules.principals ||
           std::find(rules.principals->begin(), rules.principals->end(), principal) !=
               rules.principals->end();
}

}  // namespace cellkeep::governance
