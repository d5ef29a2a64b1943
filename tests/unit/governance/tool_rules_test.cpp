// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/governance/tool_rules.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <string>

namespace cellkeep::governance {
namespace {

using nlohmann::json;

ToolRules rules_of(const char* text) {
    auto rules = parse_tool_rules(json::parse(text));
    REQUIRE(rules.has_value());
    return std::move(rules).value();
}

TEST_CASE("without a rule a call is asked about", "[governance][tools]") {
    const ToolRules rules = rules_of("{}");
    CHECK(verdict_of(rules, "anything") == Verdict::kAsk);
    CHECK(may_use(rules, "anybody"));
    CHECK_FALSE(rules.reviewed);
}

TEST_CASE("the rule that says most about a name counts", "[governance][tools]") {
    const ToolRules rules = rules_of(R"({"default": "allow", "tools": {
        "create_*": "ask", "create_draft": "allow", "*_secret": "deny", "create_s*": "deny",
        "a*c*e": "deny", "*": "ask", "x*y": "allow", "*xy": "deny"}})");
    CHECK(verdict_of(rules, "create_issue") == Verdict::kAsk);
    CHECK(verdict_of(rules, "create_draft") == Verdict::kAllow);
    CHECK(verdict_of(rules, "create_secret") == Verdict::kDeny);
    CHECK(verdict_of(rules, "read_secret") == Verdict::kDeny);
    CHECK(verdict_of(rules, "abcde") == Verdict::kDeny);
    CHECK(verdict_of(rules, "ace") == Verdict::kDeny);
    CHECK(verdict_of(rules, "acb") == Verdict::kAsk);
    CHECK(verdict_of(rules, "") == Verdict::kAsk);
    // Two that say as much: the stricter one, whichever comes first.
    CHECK(verdict_of(rules, "xxy") == Verdict::kDeny);
    CHECK(verdict_of(rules_of(R"({"default": "allow"})"), "other") == Verdict::kAllow);
}

TEST_CASE("a star that could match anywhere costs no more than its text", "[governance][tools]") {
    ToolRules rules;
    rules.rules.push_back({"a*a*a*a*a*a*a*b", Verdict::kAllow});
    CHECK(verdict_of(rules, std::string(100'000, 'a')) == Verdict::kAsk);
    CHECK(verdict_of(rules, std::string(100'000, 'a') + "b") == Verdict::kAllow);
}

TEST_CASE("only named principals may use a server", "[governance][tools]") {
    const ToolRules rules = rules_of(R"({"principals": ["analyst"]})");
    CHECK(may_use(rules, "analyst"));
    CHECK_FALSE(may_use(rules, "analyst2"));
    CHECK_FALSE(may_use(rules, "admin"));
    CHECK_FALSE(may_use(rules, ""));
    CHECK_FALSE(may_use(rules_of(R"({"principals": []})"), "analyst"));
}

TEST_CASE("what is no rule is refused", "[governance][tools]") {
    for (const char* text :
         {"1",
          "[]",
          R"({"default": "yes"})",
          R"({"default": 1})",
          R"({"Default": "deny"})",
          R"({"tools": []})",
          R"({"tools": {"a": "maybe"}})",
          R"({"tools": {"a": null}})",
          R"({"tools": {"": "deny"}})",
          R"({"principals": "analyst"})",
          R"({"principals": [1]})",
          R"({"reviewed": []})",
          R"({"reviewed": {"a": "short"}})",
          R"({"reviewed": {"a": 1}})"}) {
        CAPTURE(text);
        const auto rules = parse_tool_rules(json::parse(text));
        REQUIRE(rules.has_error());
        CHECK(rules.error().code() == ErrorCode::kInvalidArgument);
    }
    json many;
    for (std::size_t i = 0; i < kToolRulesMax; ++i) {
        many["tools"]["t" + std::to_string(i)] = "deny";
    }
    CHECK(parse_tool_rules(many).has_value());
    many["tools"]["one more"] = "deny";
    CHECK(parse_tool_rules(many).has_error());
    const std::string longest(kToolPatternBytesMax, 'p');
    CHECK(parse_tool_rules({{"tools", {{longest, "deny"}}}}).has_value());
    CHECK(parse_tool_rules({{"tools", {{longest + "p", "deny"}}}}).has_error());
}

}  // namespace
}  // namespace cellkeep::governance
