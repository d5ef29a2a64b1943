// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/checkpoint/checkpoint_tree.hpp"

#include <catch2/catch.hpp>

namespace cellkeep::checkpoint {
namespace {

Checkpoint make(const CheckpointTree& tree, std::string id, bool labelled = false) {
    Checkpoint one;
    one.id = std::move(id);
    one.parent = tree.origin();
    if (labelled) {
        one.label = "kept";
    }
    return one;
}

void add(CheckpointTree& tree, std::string id, bool labelled = false) {
    tree.add(make(tree, std::move(id), labelled));
}

TEST_CASE("a checkpoint comes from the one before, or from the one gone back to", "[checkpoint]") {
    CheckpointTree tree(8);
    CHECK(tree.empty());
    CHECK_FALSE(tree.origin().has_value());
    add(tree, "a");
    add(tree, "b");
    CHECK_FALSE(tree.find("a")->parent.has_value());
    CHECK(tree.find("b")->parent == "a");
    tree.set_origin("a");
    add(tree, "c");
    CHECK(tree.find("c")->parent == "a");
    CHECK(tree.origin() == "c");
    tree.set_origin(std::nullopt);
    add(tree, "d");
    CHECK_FALSE(tree.find("d")->parent.has_value());
    CHECK(tree.find("e") == nullptr);
    CHECK(tree.find("") == nullptr);
}

TEST_CASE("what came from a removed checkpoint comes from its parent", "[checkpoint]") {
    CheckpointTree tree(8);
    add(tree, "a");
    add(tree, "b");
    add(tree, "c");
    CHECK(tree.remove("b", Gone::kDeleted));
    CHECK(tree.find("c")->parent == "a");
    CHECK(tree.find("b") == nullptr);
    CHECK(tree.find_gone("b") == Gone::kDeleted);
    CHECK_FALSE(tree.remove("b", Gone::kDied));
    CHECK(tree.find_gone("b") == Gone::kDeleted);
    CHECK_FALSE(tree.find_gone("a").has_value());
    CHECK_FALSE(tree.find_gone("never").has_value());
    CHECK(tree.remove("c", Gone::kDied));
    CHECK(tree.origin() == "a");
    CHECK(tree.remove("a", Gone::kEvicted));
    CHECK_FALSE(tree.origin().has_value());
}

TEST_CASE("the oldest checkpoint without a label goes first", "[checkpoint]") {
    CheckpointTree tree(3);
    add(tree, "labelled", true);
    add(tree, "old");
    CHECK(tree.find_victim().value() == std::nullopt);
    add(tree, "new");
    CHECK(tree.find_victim().value() == "old");
    CHECK(tree.find_victim("old").value() == "new");
    CHECK(tree.find_victim("labelled").value() == "old");
    tree.remove("old", Gone::kEvicted);
    CHECK(tree.find_victim().value() == std::nullopt);
}

TEST_CASE("labels are kept even if there is no more room", "[checkpoint]") {
    CheckpointTree tree(2);
    add(tree, "a", true);
    add(tree, "b");
    REQUIRE(tree.find_victim("b").has_error());
    CHECK(tree.find_victim("b").error().code() == ErrorCode::kLimitExceeded);
    tree.remove("b", Gone::kDeleted);
    add(tree, "c", true);
    REQUIRE(tree.find_victim().has_error());
    CHECK(tree.find_victim().error().code() == ErrorCode::kLimitExceeded);
}

TEST_CASE("reasons are kept for the last removed checkpoints only", "[checkpoint]") {
    CheckpointTree tree(2);
    for (std::size_t i = 0; i <= kGoneKept; ++i) {
        const std::string id = std::to_string(i);
        add(tree, id);
        tree.remove(id, Gone::kEvicted);
    }
    CHECK_FALSE(tree.find_gone("0").has_value());
    CHECK(tree.find_gone("1") == Gone::kEvicted);
    CHECK(tree.find_gone(std::to_string(kGoneKept)) == Gone::kEvicted);
}

TEST_CASE(
    "an automatic checkpoint takes the place of the one before, and of no other", "[checkpoint]") {
    CheckpointTree tree(2);
    const auto add_automatic = [&](const char* id) {
        Checkpoint one;
        one.id = id;
        one.automatic = true;
        tree.add(std::move(one));
    };
    add_automatic("a");
    CHECK(tree.find_victim({}, true).value() == "a");
    CHECK_FALSE(tree.find_victim().value().has_value());
    add(tree, "b");
    // A client's one takes the automatic one's place before another of a client's.
    CHECK(tree.find_victim().value() == "a");
    CHECK(tree.find_oldest("a") == "b");
    tree.confirm("a");
    CHECK_FALSE(tree.find_automatic().has_value());
    CHECK(tree.find_victim({}, true).error().code() == ErrorCode::kLimitExceeded);
    CHECK(tree.find_victim().value() == "a");
    CHECK(to_string(AutoCheckpoints::kOff) == "off");
    CHECK(to_string(AutoCheckpoints::kEach) == "each");
    CHECK(to_string(AutoCheckpoints::kCostly) == "costly");
}

}  // namespace
}  // namespace cellkeep::checkpoint
