// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/governance/gate.hpp"

#include "protocol/support/syscall.hpp"

#include <catch2/catch.hpp>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace cellkeep::governance {
namespace {

ToolRules allowing() {
    ToolRules rules;
    rules.otherwise = Verdict::kAllow;
    rules.rules.push_back({"delete", Verdict::kDeny});
    rules.rules.push_back({"create", Verdict::kAsk});
    return rules;
}

Gate gate_of(ToolRules rules) {
    return {{{"github", std::move(rules)}}, ToolReviews()};
}

ToolAction action_of(const std::string& tool, const std::string& digest = "d1") {
    return {"analyst", "github", tool, digest};
}

const ToolReviews::Digests kFirst = {{"read", "d1"}, {"create", "d1"}, {"delete", "d1"}};

TEST_CASE("the gate follows the rules for what is reviewed", "[governance][tools]") {
    Gate gate = gate_of(allowing());
    CHECK(gate.see("github", "id", kFirst));
    CHECK(gate.decide(action_of("read")).verdict == Verdict::kAllow);
    CHECK(gate.decide(action_of("create")).verdict == Verdict::kAsk);
    CHECK(gate.decide(action_of("create")).reason == DecisionReason::kRule);
    CHECK(gate.decide(action_of("delete")).verdict == Verdict::kDeny);
}

TEST_CASE("a tool that is new or has changed is asked about", "[governance][tools]") {
    Gate gate = gate_of(allowing());
    CHECK(gate.decide(action_of("read")).reason == DecisionReason::kNew);  // nothing is listed yet
    CHECK(gate.see("github", "id", kFirst));
    CHECK(gate.decide(action_of("read", "d2")).verdict == Verdict::kAsk);
    CHECK(gate.decide(action_of("read", "d2")).reason == DecisionReason::kChanged);
    CHECK(gate.decide(action_of("other")).reason == DecisionReason::kNew);
    // A denial stays one.
    CHECK(gate.decide(action_of("delete", "d2")).verdict == Verdict::kDeny);
    // Later lists review nothing.
    CHECK_FALSE(gate.see("github", "id", {{"read", "d2"}, {"other", "d1"}}));
    CHECK(gate.decide(action_of("read", "d2")).verdict == Verdict::kAsk);
    CHECK(gate.decide(action_of("other")).verdict == Verdict::kAsk);
    // A person does.
    gate.review("github", "read", "d2");
    CHECK(gate.decide(action_of("read", "d2")).verdict == Verdict::kAllow);
    CHECK(gate.decide(action_of("read", "d1")).reason == DecisionReason::kChanged);
}

TEST_CASE("another server with the same name is another one", "[governance][tools]") {
    Gate gate = gate_of(allowing());
    CHECK(gate.see("github", "id", kFirst));
    CHECK(gate.see("github", "other id", {{"read", "d9"}}));
    CHECK(gate.decide(action_of("read", "d9")).verdict == Verdict::kAllow);
    CHECK(gate.decide(action_of("create")).reason == DecisionReason::kNew);
}

TEST_CASE("digests of the operator are the only review", "[governance][tools]") {
    ToolRules rules = allowing();
    rules.reviewed = ToolReviews::Digests{{"read", "d1"}};
    Gate gate = gate_of(rules);
    CHECK(gate.see("github", "id", {{"read", "d2"}, {"other", "d1"}}));
    CHECK(gate.decide(action_of("read", "d1")).verdict == Verdict::kAllow);
    CHECK(gate.decide(action_of("read", "d2")).reason == DecisionReason::kChanged);
    CHECK(gate.decide(action_of("other")).reason == DecisionReason::kNew);
}

TEST_CASE("others and unknown servers are denied", "[governance][tools]") {
    ToolRules rules = allowing();
    rules.principals = std::vector<std::string>{"analyst"};
    Gate gate = gate_of(rules);
    CHECK(gate.see("github", "id", kFirst));
    CHECK(gate.decide(action_of("read")).verdict == Verdict::kAllow);
    CHECK(gate.may_use("github", "analyst"));
    ToolAction other = action_of("read");
    other.principal = "admin";
    CHECK(gate.decide(other).verdict == Verdict::kDeny);
    CHECK(gate.decide(other).reason == DecisionReason::kPrincipal);
    CHECK_FALSE(gate.may_use("github", "admin"));
    ToolAction unknown = action_of("read");
    unknown.server = "gitlab";
    CHECK(gate.decide(unknown).verdict == Verdict::kDeny);
    CHECK_FALSE(gate.see("gitlab", "id", kFirst));
    CHECK(to_string(DecisionReason::kRule) == "rule");
    CHECK(to_string(DecisionReason::kNew) == "new_tool");
    CHECK(to_string(DecisionReason::kChanged) == "changed_tool");
}

TEST_CASE("reviews are kept in a file", "[governance][tools]") {
    std::string folder = std::filesystem::temp_directory_path() / "ck-reviews-XXXXXX";
    REQUIRE(::mkdtemp(folder.data()) != nullptr);
    const std::string path = folder + "/reviewed-tools.json";
    auto none = ToolReviews::load(path);
    REQUIRE(none.has_value());
    CHECK(none.value().take_first("github", "id", kFirst));
    REQUIRE(none.value().save(path).has_value());
    auto kept = ToolReviews::load(path);
    REQUIRE(kept.has_value());
    CHECK(kept.value().state("github", "read", "d1") == ToolReviews::State::kReviewed);
    CHECK(kept.value().state("github", "read", "d2") == ToolReviews::State::kChanged);
    CHECK(kept.value().state("github", "none", "d1") == ToolReviews::State::kNew);
    CHECK_FALSE(kept.value().take_first("github", "id", {}));
    // Another process with the file keeps what it has seen, and what this one has.
    ToolReviews other;
    CHECK(other.take_first("docs", "id", {{"find", "d1"}}));
    REQUIRE(other.save(path).has_value());
    REQUIRE(kept.value().save(path).has_value());
    auto both = ToolReviews::load(path);
    REQUIRE(both.has_value());
    CHECK(both.value().state("github", "read", "d1") == ToolReviews::State::kReviewed);
    CHECK(both.value().state("docs", "find", "d1") == ToolReviews::State::kReviewed);
    CHECK_FALSE(both.value().take_first("docs", "id", {}));
    for (const char* text :
         {"",
          "[]",
          R"({"a": 1})",
          R"({"a": {"identity": "i"}})",
          R"({"a": {"identity": "i", "tools": {"t": 1}}})"}) {
        CAPTURE(text);
        REQUIRE(write_file_atomically(path, text, 0600).has_value());
        CHECK(ToolReviews::load(path).has_error());
    }
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace cellkeep::governance
