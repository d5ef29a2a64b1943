// SPDX-License-Identifier: Apache-2.0
//
// What another program says of families, and who of them can go on.
#include "kernel-manager/session/passing/families_again.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace cellkeep::session {
namespace {

using Parent = std::optional<std::string>;

void add_session(
    PassedSessions& passed, const std::string& id, std::uint32_t slot, const Parent& parent = {}) {
    PassedSession one;
    one.id = id;
    one.slot = slot;
    one.sandbox.file_uid = 900;
    if (parent) {
        one.branch = BranchInfo{*parent, "ckp_1", std::nullopt};
    }
    passed.sessions.push_back(std::move(one));
}

void add_remains(
    PassedSessions& passed, const std::string& id, std::uint32_t slot, Parent parent = {}) {
    PassedRemains one;
    one.id = id;
    one.slot = slot;
    one.sandbox.file_uid = 900;
    one.parent = std::move(parent);
    passed.remains.push_back(std::move(one));
}

std::string name_of(std::size_t depth) {
    return "ses_" + std::to_string(depth);
}

/// A line of branches of branches.
PassedSessions line_of(std::size_t length) {
    PassedSessions passed;
    for (std::size_t i = 0; i < length; ++i) {
        add_session(
            passed,
            name_of(i),
            static_cast<std::uint32_t>(i),
            i == 0 ? Parent() : Parent(name_of(i - 1)));
    }
    return passed;
}

void check_refused(
    FamiliesAgain& families, const std::string& id, ErrorCode code, const std::string& why) {
    CAPTURE(id);
    const auto joined = families.join(id);
    REQUIRE(joined.has_error());
    CHECK(joined.error().code() == code);
    CHECK(joined.error().message() == "passed family: " + why);
}

TEST_CASE("families are as they were, in whatever order they come", "[session][passing]") {
    PassedSessions passed;
    add_session(passed, "child", 4, "middle");
    add_session(passed, "alone", 7);
    add_session(passed, "other", 5, "first");
    add_remains(passed, "middle", 6, "first");
    add_remains(passed, "first", 2);
    FamiliesAgain families(passed);
    const auto child = families.join("child");
    const auto other = families.join("other");
    const auto middle = families.join("middle");
    const auto first = families.join("first");
    const auto alone = families.join("alone");
    for (const auto* one : {&child, &other, &middle, &first, &alone}) {
        REQUIRE(one->has_value());
    }
    CHECK(child.value()->slot() == 2);
    CHECK(child.value()->depth() == 2);
    CHECK(child.value()->parent() == middle.value().get());
    CHECK(other.value()->parent() == first.value().get());
    CHECK(middle.value()->branches() == 1);
    CHECK(first.value()->branches() == 2);
    CHECK(first.value()->parent() == nullptr);
    CHECK(alone.value()->slot() == 7);
    CHECK(alone.value()->branches() == 0);
    CHECK(families.join("child").value() == child.value());
}

TEST_CASE(
    "a branch is as far away from the first as it may be, and not more", "[session][passing]") {
    const PassedSessions longest = line_of(kBranchDepthMax + 2);
    FamiliesAgain families(longest);
    const auto last = families.join(name_of(kBranchDepthMax));
    REQUIRE(last.has_value());
    CHECK(last.value()->depth() == kBranchDepthMax);
    check_refused(
        families,
        name_of(kBranchDepthMax + 1),
        ErrorCode::kProtocol,
        "a branch is more than 8 sessions away from the first");
}

TEST_CASE("what fits in no family is refused, and others go on", "[session][passing]") {
    PassedSessions passed = line_of(3);
    FamiliesAgain* families = nullptr;
    std::optional<FamiliesAgain> made;
    const auto make = [&] {
        made.emplace(passed);
        families = &*made;
    };
    SECTION("a branch of nobody") {
        add_session(passed, "lost", 8, "nobody");
        add_remains(passed, "below", 9, "lost");
        make();
        const std::string why = "session nobody, which has branches, is not there";
        check_refused(*families, "lost", ErrorCode::kProtocol, why);
        check_refused(*families, "below", ErrorCode::kProtocol, why);
    }
    SECTION("one that did not come at all") {
        make();
        check_refused(
            *families,
            "nobody",
            ErrorCode::kProtocol,
            "session nobody, which has branches, is not there");
    }
    SECTION("a circle") {
        add_session(passed, "a", 8, "b");
        add_remains(passed, "b", 9, "a");
        add_session(passed, "c", 10, "b");
        make();
        for (const char* id : {"a", "b", "c"}) {
            check_refused(
                *families,
                id,
                ErrorCode::kProtocol,
                "a branch is more than 8 sessions away from the first");
        }
    }
    SECTION("a branch of itself") {
        add_session(passed, "a", 8, "a");
        make();
        check_refused(
            *families,
            "a",
            ErrorCode::kProtocol,
            "a branch is more than 8 sessions away from the first");
    }
    SECTION("two of one name") {
        add_session(passed, "a", 8);
        add_remains(passed, "a", 9);
        add_session(passed, "below", 10, "a");
        make();
        for (const char* id : {"a", "below"}) {
            check_refused(*families, id, ErrorCode::kProtocol, "session a comes twice");
        }
    }
    SECTION("one that has another user") {
        add_session(passed, "a", 8, name_of(1));
        passed.sessions.back().sandbox.file_uid = 901;
        make();
        check_refused(*families, "a", ErrorCode::kProtocol, "not all have one user");
    }
    for (std::size_t i = 0; i < 3; ++i) {
        CHECK(families->join(name_of(i)).has_value());
    }
    CHECK(families->join(name_of(0)).value()->branches() == 1);
    CHECK(families->join(name_of(2)).value()->branches() == 0);
}

TEST_CASE("who lies in one that is lost is lost, too", "[session][passing]") {
    PassedSessions passed = line_of(3);
    add_session(passed, "other", 8, name_of(0));
    FamiliesAgain families(passed);
    const auto first = families.join(name_of(0)).value();
    CHECK(families.join(name_of(1)).has_value());
    CHECK(families.join("other").has_value());
    CHECK(first->branches() == 2);
    families.lose(name_of(1));
    CHECK(first->branches() == 1);
    for (const std::size_t i : {1U, 2U}) {
        check_refused(
            families,
            name_of(i),
            ErrorCode::kUnavailable,
            "session ses_1, in which it lies, is not taken over");
    }
    CHECK(families.join("other").has_value());
    families.lose("nobody");
    CHECK(families.join(name_of(0)).has_value());
}

}  // namespace
}  // namespace cellkeep::session
