// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/checkpoint/files/manifest.hpp"

#include <catch2/catch.hpp>

namespace cellkeep::checkpoint {
namespace {

using sandbox::EntryKind;

KeptFile kept(const std::string& content, std::uint32_t mode = 0644) {
    return {EntryKind::kFile, mode, 1, content.size(), content};
}

TEST_CASE("a comparison names what was made, changed and removed, by path", "[manifest]") {
    Manifest earlier;
    earlier.files = {{"a", kept("1")}, {"b", kept("2")}, {"c", kept("3")}, {"e", kept("5")}};
    Manifest later;
    later.files = {{"b", kept("22")}, {"c", kept("3")}, {"d", kept("4")}, {"e", kept("5", 0600)}};
    later.files["c"].modified = 7;
    const FileChanges changes = compare(earlier, later);
    CHECK(changes.complete);
    REQUIRE(changes.list.size() == 4);
    const auto is = [&](std::size_t at, const char* path, const char* what, std::uint64_t bytes) {
        const FileChange& one = changes.list.at(at);
        return one.path == path && to_string(one.what) == what &&
               (one.after ? one.after->bytes : 0) == bytes;
    };
    CHECK(is(0, "a", "deleted", 0));
    CHECK(is(1, "b", "modified", 2));
    CHECK(is(2, "d", "created", 1));
    CHECK(is(3, "e", "mode", 1));
    CHECK(changes.list[0].before->bytes == 1);
    CHECK_FALSE(changes.list[0].after.has_value());
    CHECK_FALSE(changes.list[2].before.has_value());
    CHECK(changes.list[3].before->mode == 0644);
    CHECK(changes.list[3].after->mode == 0600);
    CHECK_FALSE(are_alike(earlier, later));
    CHECK(compare(earlier, earlier).list.empty());
    CHECK(are_alike(earlier, earlier));
}

TEST_CASE("what could not be kept is neither removed nor made", "[manifest]") {
    Manifest whole;
    whole.files = {{"a", kept("1")}};
    Manifest lacking;
    lacking.unkept = {{"a", Unkept::kSpace}};
    for (const auto& changes : {compare(whole, lacking), compare(lacking, whole)}) {
        CHECK(changes.list.empty());
        CHECK_FALSE(changes.complete);
    }
    // Two of which the same is missing may differ in it.
    CHECK_FALSE(are_alike(lacking, lacking));
    // But for what has no contents.
    lacking.unkept["a"] = Unkept::kKind;
    CHECK(are_alike(lacking, lacking));
    lacking.complete = false;
    CHECK_FALSE(are_alike(lacking, lacking));
}

TEST_CASE(
    "a file that is of another kind is another file, whatever its permissions", "[manifest]") {
    const KeptFile file = kept("x");
    KeptFile other = kept("x", 0600);
    CHECK(find_change(&file, &other) == Change::kMode);
    other.kind = EntryKind::kLink;
    CHECK(find_change(&file, &other) == Change::kModified);
    CHECK(find_change(nullptr, &other) == Change::kCreated);
    CHECK(find_change(&file, nullptr) == Change::kDeleted);
    CHECK_FALSE(find_change(&file, &file).has_value());
    CHECK_FALSE(find_change(nullptr, nullptr).has_value());
}

TEST_CASE("a page of a comparison names kFileChangesMax changes", "[manifest]") {
    Manifest later;
    const auto add = [&](std::size_t number) {
        later.files.emplace("f" + std::to_string(number), kept("x"));
    };
    for (std::size_t i = 0; i < kFileChangesMax; ++i) {
        add(i);
    }
    CHECK_FALSE(compare({}, later).more);
    add(kFileChangesMax);
    const FileChanges changes = compare({}, later);
    CHECK(changes.list.size() == kFileChangesMax);
    CHECK(changes.more);
    CHECK(changes.complete);
}

TEST_CASE(
    "the pages of a comparison name each change once, also when files come and go", "[manifest]") {
    Manifest earlier;
    earlier.files = {{"a", kept("1")}, {"b", kept("2")}, {"c", kept("3")}, {"d", kept("4")}};
    const Manifest nothing;
    const FileChanges first = compare(earlier, nothing, {"", 2});
    REQUIRE(first.list.size() == 2);
    CHECK(first.more);
    CHECK(first.list.back().path == "b");
    const FileChanges second = compare(earlier, nothing, {"b", 2});
    REQUIRE(second.list.size() == 2);
    CHECK_FALSE(second.more);
    CHECK(second.list.front().path == "c");
    // A cursor names a place, not a file.
    CHECK(compare(earlier, nothing, {"bb", 9}).list.size() == 2);
    CHECK(compare(earlier, nothing, {"d", 1}).list.empty());
    CHECK(compare(earlier, nothing, {"a", 1}).list.front().path == "b");
}

}  // namespace
}  // namespace cellkeep::checkpoint
