// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/checkpoints/family.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <utility>
#include <vector>

namespace cellkeep::session {
namespace {

using Seen = std::vector<std::pair<pid_t, std::uint32_t>>;

FamilyMember::LetPass note(Seen& seen, bool works = true) {
    return [&seen, works](pid_t inside, std::uint32_t calls) -> Status {
        seen.emplace_back(inside, calls);
        return works ? Status(ok()) : Status(Error(ErrorCode::kUnavailable, "pid 1 is busy"));
    };
}

TEST_CASE("branches have the number of the first session and a depth of their own", "[family]") {
    const auto first = std::make_shared<FamilyMember>(7);
    const auto branch = std::make_shared<FamilyMember>(first);
    const auto deeper = std::make_shared<FamilyMember>(branch);
    const auto other = std::make_shared<FamilyMember>(first);
    CHECK(deeper->parent() == branch.get());
    CHECK(first->parent() == nullptr);
    CHECK(deeper->slot() == 7);
    CHECK(first->depth() == 0);
    CHECK(deeper->depth() == 2);
    CHECK(first->branches() == 2);
    CHECK(branch->branches() == 1);
    CHECK(other->branches() == 0);
}

TEST_CASE("a member is free when its last branch has left", "[family]") {
    const auto first = std::make_shared<FamilyMember>(0);
    int free = 0;
    first->when_free([&free] { ++free; });
    CHECK(free == 1);  // it has none
    auto one = std::make_shared<FamilyMember>(first);
    const auto two = std::make_shared<FamilyMember>(first);
    first->when_free([&free] { ++free; });
    CHECK(free == 1);
    two->leave();
    two->leave();
    CHECK(first->branches() == 1);
    CHECK(free == 1);
    SECTION("by saying so") {
        one->leave();
    }
    SECTION("by its end") {
        one.reset();
    }
    CHECK(first->branches() == 0);
    CHECK(free == 2);
    const auto three = std::make_shared<FamilyMember>(first);
    three->leave();
    CHECK(free == 2);  // asked once, told once
}

TEST_CASE("a process is known to each sandbox by its number there", "[family]") {
    Seen of_first;
    Seen of_branch;
    Seen of_deeper;
    const auto first = std::make_shared<FamilyMember>(0);
    const auto branch = std::make_shared<FamilyMember>(first);
    const FamilyMember deeper(branch);
    const FamilyMember sibling(first);
    first->set_let_pass(note(of_first));
    branch->set_let_pass(note(of_branch, false));  // the others are told all the same
    // Above the family are the namespaces of the server and of a zygote.
    branch->let_pass({4000, 300, 20, 5}, 96);
    CHECK(of_branch == Seen{{5, 96}});
    CHECK(of_first == Seen{{20, 96}});
    deeper.let_pass({4001, 301, 21, 6, 2}, 0);  // its own sandbox is gone
    CHECK(of_branch.back() == std::pair<pid_t, std::uint32_t>{6, 0});
    CHECK(of_first.back() == std::pair<pid_t, std::uint32_t>{21, 0});
    deeper.let_pass({}, 96);  // nothing is known of it
    deeper.let_pass({1}, 96);
    CHECK(of_branch.size() == 2);
    CHECK(of_first.size() == 2);
}

}  // namespace
}  // namespace cellkeep::session
