// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/checkpoint/files/file_merge.hpp"

#include "tests/unit/checkpoint/files/files_fixture.hpp"

#include <functional>

namespace cellkeep::checkpoint {
namespace {

namespace fs = std::filesystem;
using Outcome = MergeAnswer::Outcome;

/// A session and a branch of it, as directories.
struct TwoWorkspaces {
    FilesFixture session;
    FilesFixture branch;
    FilesFixture::Kept base;

    /// What both have now is what the branch was made with.
    void part() {
        fs::copy(
            session.files.path(""),
            branch.files.path(""),
            fs::copy_options::recursive | fs::copy_options::copy_symlinks |
                fs::copy_options::overwrite_existing);
        base = session.capture();
    }
    MergeAnswer merge(MergeOrder order = {}, const std::function<void()>& meanwhile = {}) const {
        const auto ours = session.capture();
        const auto theirs = branch.capture();
        if (meanwhile) {
            meanwhile();
        }
        FileMerge work({session.versions, ours, branch.versions, theirs, base}, std::move(order));
        while (work.advance()) {
        }
        return work.take();
    }
};

TEST_CASE("a branch's files get into its parent", "[merge]") {
    TwoWorkspaces two;
    two.session.files.write("same", "same");
    two.session.files.write("changed", "before");
    two.session.files.write("gone/deep/file", "deep");
    two.session.files.write("mode", "x");
    two.session.files.write("kind", "x");
    fs::create_symlink("same", two.session.files.path("link"));
    two.part();
    two.session.files.write("own", "mine");
    const auto& there = two.branch.files;
    there.write("changed", "after, and longer");
    fs::remove_all(there.path("gone"));
    there.write("new/inner/file", "new");
    there.write("empty", "");
    REQUIRE(::chmod(there.path("new/inner").c_str(), 0500) == 0);
    REQUIRE(::chmod(there.path("mode").c_str(), 0600) == 0);
    fs::remove(there.path("link"));
    fs::create_symlink("changed", there.path("link"));
    fs::remove(there.path("kind"));
    there.write("kind/is/other", "y");
    const auto stamp = fs::last_write_time(there.path("changed"));
    const MergeAnswer answer = two.merge();
    REQUIRE(answer.outcome == Outcome::kDone);
    CHECK(answer.conflict_count == 0);
    CHECK(answer.change_count == answer.changes.size());
    CHECK(two.session.read("own") == "mine");
    fs::remove(two.session.files.path("own"));
    CHECK(compare(*two.branch.capture(), *two.session.capture()).list.empty());
    CHECK(fs::last_write_time(two.session.files.path("changed")) == stamp);
    // Once more: nothing is to be done.
    two.base = answer.base;
    CHECK(two.merge().change_count == 0);
    // What changes again is no conflict.
    there.write("changed", "again");
    const MergeAnswer again = two.merge();
    CHECK(again.outcome == Outcome::kDone);
    REQUIRE(again.change_count == 1);
    CHECK(again.changes[0].path == "changed");
    CHECK(two.session.read("changed") == "again");
    REQUIRE(::chmod(there.path("new/inner").c_str(), 0700) == 0);
    REQUIRE(::chmod(two.session.files.path("new/inner").c_str(), 0700) == 0);
}

TEST_CASE("nothing is done while there is a conflict, and all of it by force", "[merge]") {
    TwoWorkspaces two;
    two.session.files.write("both", "0");
    two.session.files.write("d/file", "0");
    two.part();
    two.session.files.write("both", "here");
    two.session.files.write("d/own", "here");
    two.branch.files.write("both", "branch");
    two.branch.files.write("new", "branch");
    fs::remove_all(two.branch.files.path("d"));
    const auto before = two.session.capture();
    const MergeAnswer refused = two.merge();
    CHECK(refused.outcome == Outcome::kConflicts);
    CHECK(refused.conflict_count == 2);
    CHECK(refused.conflicts.at(0).path == "both");
    CHECK(refused.conflicts.at(1).path == "d/own");
    CHECK(refused.base == nullptr);
    CHECK(compare(*before, *two.session.capture()).list.empty());
    MergeOrder order;
    order.force = true;
    const MergeAnswer forced = two.merge(order);
    CHECK(forced.outcome == Outcome::kDone);
    CHECK(forced.conflict_count == 2);
    CHECK(two.session.read("both") == "branch");
    CHECK_FALSE(two.session.exists("d"));
}

TEST_CASE("what the session changes meanwhile undoes the merge", "[merge]") {
    TwoWorkspaces two;
    two.session.files.write("a", "0");
    two.session.files.write("gone/file", "0");
    two.session.files.write("z", "0");
    fs::create_symlink("a", two.session.files.path("link"));
    two.part();
    two.branch.files.write("a", "branch");
    two.branch.files.write("new/file", "branch");
    two.branch.files.write("zz", "branch");
    fs::remove_all(two.branch.files.path("gone"));
    fs::remove(two.branch.files.path("link"));
    two.branch.files.write("link", "a file");
    const auto& files = two.session.files;
    const auto before = two.session.capture();
    const auto is_undone = [&](const char* path, const std::function<void()>& meanwhile) {
        MergeOrder order;
        order.force = true;  // that is for what was seen, not for what comes later
        const MergeAnswer answer = two.merge(order, meanwhile);
        INFO(path);
        REQUIRE(answer.failure.has_value());
        CHECK(answer.failure->path == path);
        CHECK(answer.outcome == Outcome::kUndone);
        CHECK(answer.left_count == 0);
    };
    is_undone("zz", [&] { files.write("zz", "here"); });
    CHECK(two.session.read("zz") == "here");
    fs::remove(files.path("zz"));
    CHECK(compare(*before, *two.session.capture()).list.empty());
    is_undone("a", [&] { files.write("a", "longer"); });
    CHECK(two.session.read("a") == "longer");
    files.write("a", "0");
    is_undone("link", [&] {
        fs::remove(files.path("link"));
        fs::create_symlink("z", files.path("link"));
    });
    fs::remove(files.path("link"));
    fs::create_symlink("a", files.path("link"));
    is_undone("gone", [&] { files.write("gone/late", "here"); });
    CHECK(two.session.read("gone/file") == "0");
    CHECK(two.session.read("gone/late") == "here");
    fs::remove(files.path("gone/late"));
    CHECK(compare(*before, *two.session.capture()).list.empty());
    // A link in a directory's place leads nowhere.
    test::TemporaryDirectory elsewhere;
    is_undone("new", [&] { fs::create_directory_symlink(elsewhere.path(), files.path("new")); });
    CHECK(elsewhere.entry_count() == 0);
    fs::remove(files.path("new"));
    CHECK(compare(*before, *two.session.capture()).list.empty());
    CHECK(two.merge().outcome == Outcome::kDone);
}

TEST_CASE(
    "contents that are not there undo the merge, and what cannot be undone is named", "[merge]") {
    TwoWorkspaces two;
    two.session.files.write("a", "0");
    two.session.files.write("b", "0");
    two.part();
    two.branch.files.write("a", "branch");
    two.branch.files.write("b", "lost");
    const auto ours = two.session.capture();
    const auto theirs = two.branch.capture();
    Manifest only_b;
    only_b.files.emplace("b", theirs->files.at("b"));
    two.branch.versions->drop(only_b);
    const auto merge = [&] {
        FileMerge work({two.session.versions, ours, two.branch.versions, theirs, two.base}, {});
        while (work.advance()) {
        }
        return work.take();
    };
    const MergeAnswer undone = merge();
    CHECK(undone.outcome == Outcome::kUndone);
    CHECK(undone.failure->path == "b");
    CHECK(two.session.read("a") == "0");
    CHECK(two.session.read("b") == "0");
    // Nor are the session's own.
    two.session.versions->drop(*ours);
    two.session.versions->drop(*two.base);
    const MergeAnswer partly = merge();
    CHECK(partly.outcome == Outcome::kPartly);
    CHECK(partly.left_count == 1);
    REQUIRE(partly.left.size() == 1);
    CHECK(partly.left[0].path == "a");
    CHECK(two.session.read("b") == "0");
    CHECK(partly.base == nullptr);
}

TEST_CASE("a workspace of which not all is known is not merged", "[merge]") {
    TwoWorkspaces two;
    two.session.files.write("a", "0");
    two.part();
    two.branch.files.write("a", "1");
    for (const std::size_t lacking : {0U, 1U, 2U}) {
        std::vector<Manifest> sides{*two.base, *two.session.capture(), *two.branch.capture()};
        sides[lacking].complete = false;
        FileMerge work(
            {two.session.versions,
             std::make_shared<const Manifest>(sides[1]),
             two.branch.versions,
             std::make_shared<const Manifest>(sides[2]),
             std::make_shared<const Manifest>(sides[0])},
            {});
        CHECK_FALSE(work.advance());
        CHECK(work.take().outcome == Outcome::kIncomplete);
    }
    CHECK(two.session.read("a") == "0");
}

TEST_CASE("a program that has a file open keeps the old one", "[merge]") {
    TwoWorkspaces two;
    two.session.files.write("data", "0123456789");
    two.part();
    two.branch.files.write("data", "x");
    std::ifstream open(two.session.files.path("data"), std::ios::binary);
    CHECK(two.merge().outcome == Outcome::kDone);
    std::string all;
    open >> all;
    CHECK(all == "0123456789");
    CHECK(two.session.read("data") == "x");
}

TEST_CASE("an answer of a merge names kMergeNamedMax changes", "[merge]") {
    TwoWorkspaces two;
    two.session.files.write("a", "0");
    two.part();
    for (std::size_t i = 0; i < kMergeNamedMax + 1; ++i) {
        two.branch.files.write("f" + std::to_string(i), "x");
    }
    const MergeAnswer answer = two.merge();
    CHECK(answer.outcome == Outcome::kDone);
    CHECK(answer.change_count == kMergeNamedMax + 1);
    CHECK(answer.changes.size() == kMergeNamedMax);
    // The same of conflicts.
    for (std::size_t i = 0; i < kMergeNamedMax + 1; ++i) {
        two.session.files.write("f" + std::to_string(i), "y");
    }
    const MergeAnswer refused = two.merge();
    CHECK(refused.conflict_count == kMergeNamedMax + 1);
    CHECK(refused.conflicts.size() == kMergeNamedMax);
}

}  // namespace
}  // namespace cellkeep::checkpoint
