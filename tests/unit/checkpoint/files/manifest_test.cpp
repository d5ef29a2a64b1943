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
        return one.path == path && to_string(one.what) == what && one.bytes == bytes;
    };
    CHECK(is(0, "a", "deleted", 0));
    CHECK(is(1, "b", "modified", 2));
    CHECK(is(2, "d", "created", 1));
    CHECK(is(3, "e", "modified", 1));
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

TEST_CASE("a comparison names kFileChangesMax changes", "[manifest]") {
    Manifest later;
    const auto add = [&](std::size_t number) {
        later.files.emplace("f" + std::to_string(number), kept("x"));
    };
    for (std::size_t i = 0; i < kFileChangesMax; ++i) {
        add(i);
    }
    CHECK(compare({}, later).complete);
    add(kFileChangesMax);
    const FileChanges changes = compare({}, later);
    CHECK(changes.list.size() == kFileChangesMax);
    CHECK_FALSE(changes.complete);
}

}  // namespace
}  // namespace cellkeep::checkpoint
