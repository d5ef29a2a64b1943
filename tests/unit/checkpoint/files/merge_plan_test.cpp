// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/checkpoint/files/merge_plan.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

namespace cellkeep::checkpoint {
namespace {

using sandbox::EntryKind;
using Paths = std::vector<std::string>;

KeptFile file(const std::string& content, std::uint32_t mode = 0644) {
    return {EntryKind::kFile, mode, 1, content.size(), content};
}

KeptFile directory(std::uint32_t mode = 0755) {
    return {EntryKind::kDirectory, mode, 1, 0, ""};
}

Manifest holding(std::map<std::string, KeptFile> files) {
    Manifest manifest;
    manifest.files = std::move(files);
    return manifest;
}

template <typename Map>
Paths keys(const Map& map) {
    Paths paths;
    for (const auto& [path, value] : map) {
        paths.push_back(path);
    }
    return paths;
}

struct Sides {
    Manifest base;
    Manifest ours;
    Manifest theirs;

    MergePlan plan(const MergeOrder& order = {}) const {
        return plan_merge({base, ours, theirs}, order);
    }
};

TEST_CASE(
    "what only the branch has changed is taken, and what only the session has stays", "[merge]") {
    Sides sides;
    sides.base = holding({{"both", file("0")}, {"gone", file("1")}, {"here", file("2")}});
    sides.ours = sides.base;
    sides.ours.files["here"] = file("mine");
    sides.ours.files["own"] = file("mine, too");
    sides.theirs = holding({{"both", file("other")}, {"here", file("2")}, {"new", file("n")}});
    const MergePlan plan = sides.plan();
    CHECK(plan.conflicts.empty());
    CHECK(keys(plan.steps) == Paths{"both", "gone", "new"});
    CHECK(plan.steps.at("both").have == file("0"));
    CHECK(plan.steps.at("both").want == file("other"));
    CHECK_FALSE(plan.steps.at("gone").want.has_value());
    CHECK_FALSE(plan.steps.at("new").have.has_value());
    // The next merge begins where this one has ended.
    CHECK(plan.base->files == sides.theirs.files);
}

TEST_CASE("what both have changed is a conflict, unless they agree", "[merge]") {
    Sides sides;
    sides.base = holding({{"a", file("0")}, {"b", file("0")}, {"c", file("0")}, {"m", file("0")}});
    sides.ours =
        holding({{"a", file("1")}, {"c", file("1")}, {"d", file("1")}, {"m", file("0", 0600)}});
    sides.theirs =
        holding({{"a", file("2")}, {"b", file("2")}, {"d", file("2")}, {"m", file("2")}});
    const MergePlan plan = sides.plan();
    REQUIRE(keys(plan.conflicts) == Paths{"a", "b", "c", "d", "m"});
    const auto is = [&](const char* path, Change here, Change branch) {
        const MergeConflict& one = plan.conflicts.at(path);
        return one.here == here && one.branch == branch;
    };
    CHECK(is("a", Change::kModified, Change::kModified));
    CHECK(is("b", Change::kDeleted, Change::kModified));
    CHECK(is("c", Change::kModified, Change::kDeleted));
    CHECK(is("d", Change::kCreated, Change::kCreated));
    CHECK(is("m", Change::kMode, Change::kModified));
    // What is to be done if the branch wins.
    CHECK(plan.steps.size() == 5);
    sides.ours = sides.theirs;
    const MergePlan agreed = sides.plan();
    CHECK(agreed.conflicts.empty());
    CHECK(agreed.steps.empty());
    CHECK(agreed.base->files == sides.theirs.files);
}

TEST_CASE("a directory that the branch has removed may hold what it does not know", "[merge]") {
    Sides sides;
    sides.base = holding({{"d", directory()}, {"d/a", file("0")}, {"d-x", file("0")}});
    sides.ours = sides.base;
    sides.ours.files["d/own"] = directory();
    sides.ours.files["d/own/file"] = file("1");
    sides.theirs = holding({{"d-x", file("0")}});
    const MergePlan plan = sides.plan();
    CHECK(keys(plan.conflicts) == Paths{"d/own", "d/own/file"});
    CHECK(keys(plan.steps) == Paths{"d", "d/a", "d/own", "d/own/file"});
    // A file in its place is no better.
    sides.theirs.files["d"] = file("flat");
    CHECK(keys(sides.plan().conflicts) == Paths{"d/own", "d/own/file"});
    // One that cannot be read is there, too.
    sides.ours.files.erase("d/own/file");
    sides.ours.files.erase("d/own");
    sides.ours.unkept["d/socket"] = Unkept::kKind;
    const MergePlan socket = sides.plan();
    CHECK(keys(socket.conflicts) == Paths{"d/socket"});
    CHECK_FALSE(socket.conflicts.at("d/socket").here.has_value());
    sides.ours.unkept.clear();
    CHECK(sides.plan().conflicts.empty());
}

TEST_CASE("a file needs the directories that it is in", "[merge]") {
    Sides sides;
    sides.base = holding({{"d", directory()}, {"d/e", directory()}});
    sides.theirs = sides.base;
    sides.theirs.files["d/e/new"] = file("1");
    // The session has removed them.
    const MergePlan removed = sides.plan();
    CHECK(keys(removed.conflicts) == Paths{"d", "d/e"});
    CHECK(removed.conflicts.at("d").here == Change::kDeleted);
    CHECK_FALSE(removed.conflicts.at("d").branch.has_value());
    CHECK(keys(removed.steps) == Paths{"d", "d/e", "d/e/new"});
    // Or has put a file there.
    sides.ours = holding({{"d", file("flat")}});
    CHECK(sides.plan().conflicts.at("d").here == Change::kModified);
    // Those that the branch has made come with it, also if only the file is asked for.
    sides = {};
    sides.theirs =
        holding({{"n", directory()}, {"n/o", directory()}, {"n/o/f", file("1")}, {"x", file("1")}});
    MergeOrder order;
    order.paths = {"n/o/f"};
    const MergePlan alone = sides.plan(order);
    CHECK(alone.conflicts.empty());
    CHECK(keys(alone.steps) == Paths{"n", "n/o", "n/o/f"});
    CHECK(keys(alone.base->files) == Paths{"n", "n/o", "n/o/f"});
}

TEST_CASE("only what is asked for is taken, or is a conflict", "[merge]") {
    Sides sides;
    sides.base =
        holding({{"a", file("0")}, {"d", directory()}, {"d/x", file("0")}, {"dx", file("0")}});
    sides.ours = sides.base;
    sides.ours.files["a"] = file("mine");
    sides.theirs = sides.base;
    for (const char* path : {"a", "d/x", "dx"}) {
        sides.theirs.files[path] = file("other");
    }
    MergeOrder order;
    order.paths = {"d", "d/x", "same", "d/none"};
    const MergePlan plan = sides.plan(order);
    CHECK(plan.conflicts.empty());
    CHECK(keys(plan.steps) == Paths{"d/x"});
    CHECK(plan.unmatched == Paths{"d/none", "same"});
    // What was not asked for can be taken later.
    CHECK(plan.base->files.at("dx") == file("0"));
    CHECK(plan.base->files.at("d/x") == file("other"));
    sides.base = *plan.base;
    sides.ours.files["d/x"] = file("other");
    sides.ours.files["d/x"].modified = 9;
    CHECK(keys(sides.plan().steps) == Paths{"a", "dx"});
}

TEST_CASE("what could not be read is neither taken nor overwritten", "[merge]") {
    Sides sides;
    sides.base = holding({{"a", file("0")}, {"b", file("0")}});
    sides.ours = sides.base;
    sides.theirs = holding({{"b", file("1")}});
    sides.theirs.unkept = {{"a", Unkept::kFileBytes}, {"new", Unkept::kKind}};
    MergePlan plan = sides.plan();
    CHECK(plan.conflicts.empty());
    CHECK(keys(plan.steps) == Paths{"b"});
    CHECK(plan.skipped.at("a") == Unkept::kFileBytes);
    CHECK(plan.skipped.at("new") == Unkept::kKind);
    CHECK(plan.base->files.at("a") == file("0"));
    MergeOrder order;
    order.paths = {"b"};
    CHECK(sides.plan(order).skipped.empty());
    // The session's own.
    sides.theirs.unkept.clear();
    sides.theirs.files["a"] = file("0");
    sides.ours = holding({{"a", file("0")}});
    sides.ours.unkept = {{"b", Unkept::kChanging}};
    plan = sides.plan();
    CHECK(keys(plan.conflicts) == Paths{"b"});
    CHECK(plan.skipped.at("b") == Unkept::kChanging);
    CHECK(plan.steps.empty());
    // What it was is not known: both may have changed it.
    sides.ours = holding({{"a", file("0")}, {"b", file("2")}});
    sides.base = holding({{"a", file("0")}});
    sides.base.unkept = {{"b", Unkept::kSpace}};
    plan = sides.plan();
    CHECK(keys(plan.conflicts) == Paths{"b"});
    CHECK(plan.base->unkept.empty());
    // Which the branch never had.
    sides.theirs.files.erase("b");
    CHECK(sides.plan().conflicts.empty());
    CHECK(sides.plan().steps.empty());
}

}  // namespace
}  // namespace cellkeep::checkpoint
