// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/checkpoint/files/file_restore.hpp"

#include "tests/unit/checkpoint/files/files_fixture.hpp"

namespace cellkeep::checkpoint {
namespace {

namespace fs = std::filesystem;

std::uint32_t mode_of(const FilesFixture& fixture, const std::string& name) {
    struct stat info {};
    REQUIRE(::lstat(fixture.files.path(name).c_str(), &info) == 0);
    return info.st_mode & 07777U;
}

TEST_CASE("what differs is written back, and what was not there is removed", "[restore]") {
    const FilesFixture fixture;
    fixture.files.write("same", "same");
    fixture.files.write("changed", "before");
    fixture.files.write("gone/deep/file", "deep");
    fixture.files.write("mode", "x");
    REQUIRE(::chmod(fixture.files.path("mode").c_str(), 0640) == 0);
    REQUIRE(::chmod(fixture.files.path("gone").c_str(), 0750) == 0);
    fs::create_symlink("same", fixture.files.path("link"));
    fs::create_symlink("/etc/passwd", fixture.files.path("out"));
    const auto kept = fixture.capture();
    const auto stamp = fs::last_write_time(fixture.files.path("changed"));

    fixture.files.write("changed", "after, and longer");
    fs::remove_all(fixture.files.path("gone"));
    fixture.files.write("new/inner/file", "new");
    REQUIRE(::chmod(fixture.files.path("mode").c_str(), 0600) == 0);
    fs::remove(fixture.files.path("link"));
    fs::create_symlink("/root", fixture.files.path("link"));
    const auto left = fixture.capture();
    const Restored restored = fixture.restore(kept, left);
    CHECK(restored.failed == 0);
    CHECK(restored.removed == 3);
    CHECK(fixture.read("same") == "same");
    CHECK(fixture.read("changed") == "before");
    CHECK(fs::last_write_time(fixture.files.path("changed")) == stamp);
    CHECK(fixture.read("gone/deep/file") == "deep");
    CHECK(mode_of(fixture, "gone") == 0750);
    CHECK(mode_of(fixture, "mode") == 0640);
    CHECK(fs::read_symlink(fixture.files.path("link")) == "same");
    CHECK_FALSE(fixture.exists("new"));
    CHECK(compare(*kept, *fixture.capture()).list.empty());
    // Once more: nothing is to be done.
    CHECK(fixture.restore(kept).written == 0);
    // And there again.
    CHECK(fixture.restore(left, kept).failed == 0);
    CHECK(fixture.read("changed") == "after, and longer");
    CHECK(fixture.read("new/inner/file") == "new");
    CHECK(compare(*left, *fixture.capture()).list.empty());
}

TEST_CASE("a file that is open stays the same file", "[restore]") {
    const FilesFixture fixture;
    fixture.files.write("data", "0123456789");
    const auto kept = fixture.capture();
    std::ifstream open(fixture.files.path("data"), std::ios::binary);
    fixture.files.write("data", "other");
    CHECK(fixture.restore(kept).failed == 0);
    std::string all;
    open >> all;
    CHECK(all == "0123456789");
}

TEST_CASE("a second name of a file keeps its own contents", "[restore]") {
    const FilesFixture fixture;
    fixture.files.write("a", "one");
    const auto kept = fixture.capture();
    fixture.files.write("a", "two");
    fs::create_hard_link(fixture.files.path("a"), fixture.files.path("b"));
    const auto both = fixture.capture();
    // b is removed first, and a is then the only name.
    CHECK(fixture.restore(kept, both).removed == 1);
    CHECK(fixture.read("a") == "one");
    CHECK(fixture.restore(both, kept).failed == 0);
    // Names of one file come back as files of their own.
    fixture.files.write("a", "three");
    CHECK(fixture.read("b") == "two");
    test::TemporaryDirectory elsewhere;
    fs::remove(fixture.files.path("a"));
    std::ofstream(elsewhere.file("victim")) << "host";
    std::error_code other_device;
    fs::create_hard_link(elsewhere.file("victim"), fixture.files.path("a"), other_device);
    if (!other_device) {
        CHECK(fixture.restore(kept).failed == 0);
        CHECK(fixture.read("a") == "one");
        std::ifstream victim(elsewhere.file("victim"));
        std::string text;
        victim >> text;
        CHECK(text == "host");
    }
}

TEST_CASE("another kind in a file's place gives way", "[restore]") {
    const FilesFixture fixture;
    fixture.files.write("file", "x");
    fixture.files.write("directory/file", "y");
    fixture.files.write("link", "z");
    test::TemporaryDirectory elsewhere;
    std::ofstream(elsewhere.file("file")) << "host";
    const auto kept = fixture.capture();
    fs::remove(fixture.files.path("file"));
    fixture.files.write("file/in/the/way", "x");
    fs::remove_all(fixture.files.path("directory"));
    fs::create_directory_symlink(elsewhere.path(), fixture.files.path("directory"));
    fs::remove(fixture.files.path("link"));
    REQUIRE(::mkfifo(fixture.files.path("link").c_str(), 0600) == 0);
    CHECK(fixture.restore(kept, fixture.capture()).failed == 0);
    CHECK(fixture.read("file") == "x");
    CHECK(fixture.read("directory/file") == "y");
    CHECK(fixture.read("link") == "z");
    // Nothing went through the link.
    std::ifstream host(elsewhere.file("file"));
    std::string text;
    host >> text;
    CHECK(text == "host");
}

TEST_CASE("a directory that becomes a link on the way leads nowhere", "[restore]") {
    const FilesFixture fixture;
    for (std::size_t i = 0; i < 2 * FileRestore::kSliceEntries; ++i) {
        fixture.files.write("d/f" + std::to_string(i), "kept");
    }
    const auto kept = fixture.capture();
    fs::remove_all(fixture.files.path("d"));
    test::TemporaryDirectory elsewhere;
    FileRestore work(fixture.versions, kept, nullptr);
    while (!fixture.exists("d/f0")) {
        REQUIRE(work.advance());
    }
    fs::rename(fixture.files.path("d"), fixture.files.path("moved"));
    fs::create_directory_symlink(elsewhere.path(), fixture.files.path("d"));
    while (work.advance()) {
    }
    CHECK(elsewhere.entry_count() == 0);
    const Restored restored = work.take();
    CHECK(restored.failed > kFailuresNamedMax);
    CHECK(restored.failures.size() == kFailuresNamedMax);
    // The next one puts it right.
    CHECK(fixture.restore(kept, fixture.capture()).failed == 0);
    CHECK(fixture.read("d/f0") == "kept");
}

TEST_CASE("what could not be kept stays", "[restore]") {
    const FilesFixture fixture;
    fixture.files.write("sub/big", "");
    fs::resize_file(fixture.files.path("sub/big"), kKeptFileBytesMax + 1);
    const auto with_big = fixture.capture();
    fs::remove_all(fixture.files.path("sub"));
    fixture.files.write("other", "x");
    const auto without = fixture.capture();
    // It was there, and its contents are not known: what is there now is left alone.
    fixture.files.write("sub/big", "small");
    CHECK(fixture.restore(with_big).failed == 0);
    CHECK(fixture.read("sub/big") == "small");
    CHECK_FALSE(fixture.exists("other"));
    // It is there, and could not be kept: it is not lost.
    fs::resize_file(fixture.files.path("sub/big"), kKeptFileBytesMax + 1);
    CHECK(fixture.restore(without, fixture.capture()).failed == 0);
    CHECK(fixture.exists("sub/big"));
    CHECK(fixture.read("other") == "x");
    // Nor by a file in its place.
    fixture.files.write("sub/big", "small");
    fixture.files.write("sub-marine", "x");
    const auto with_small = fixture.capture();
    fs::resize_file(fixture.files.path("sub/big"), kKeptFileBytesMax + 1);
    CHECK(fixture.restore(with_small, fixture.capture()).failed == 1);
    CHECK(fs::file_size(fixture.files.path("sub/big")) == kKeptFileBytesMax + 1);
    fs::remove(fixture.files.path("sub-marine"));
    // Unless its loss was asked for.
    CHECK(fixture.restore(without).failed == 0);
    CHECK_FALSE(fixture.exists("sub"));
}

TEST_CASE("directories that may not be written or looked into are no obstacle", "[restore]") {
    const FilesFixture fixture;
    fixture.files.write("locked/file", "one");
    REQUIRE(::chmod(fixture.files.path("locked").c_str(), 0555) == 0);
    const auto kept = fixture.capture();
    REQUIRE(::chmod(fixture.files.path("locked").c_str(), 0755) == 0);
    fs::remove(fixture.files.path("locked/file"));
    fixture.files.write("locked/more", "x");
    fixture.files.write("new/file", "x");
    REQUIRE(::chmod(fixture.files.path("locked").c_str(), 0) == 0);
    REQUIRE(::chmod(fixture.files.path("new").c_str(), 0500) == 0);
    CHECK(fixture.restore(kept).failed == 0);
    CHECK(fixture.read("locked/file") == "one");
    CHECK_FALSE(fixture.exists("locked/more"));
    CHECK_FALSE(fixture.exists("new"));
    CHECK(mode_of(fixture, "locked") == 0555);
    REQUIRE(::chmod(fixture.files.path("locked").c_str(), 0755) == 0);
}

TEST_CASE("contents of several slices with holes come back, as holes", "[restore]") {
    const FilesFixture fixture;
    std::string contents(FileRestore::kSliceBytes + 12'345, '\0');
    contents.replace(5'000, 3, "one");
    contents.back() = '!';
    fixture.files.write("large", contents);
    const auto kept = fixture.capture();
    fs::remove(fixture.files.path("large"));
    CHECK(fixture.restore(kept).failed == 0);
    CHECK(fixture.read("large") == contents);
    struct stat info {};
    REQUIRE(::stat(fixture.files.path("large").c_str(), &info) == 0);
    CHECK(info.st_blocks * 512 < 1 << 20);
}

}  // namespace
}  // namespace cellkeep::checkpoint
