// SPDX-License-Identifier: Apache-2.0
//
// Image files, which take root and mkfs.erofs.
#include "kernel-manager/image/image_mount.hpp"
#include "kernel-manager/image/image_store.hpp"
#include "tests/support/skip.hpp"
#include "tests/unit/image/image_fixture.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace cellkeep::test {
namespace {

namespace fs = std::filesystem;
using image::Format;

image::ImageRecord build_erofs(ImageFixture& fixture) {
    if (!image::can_build_erofs()) {
        skip("erofs", "needs root, mkfs.erofs and a kernel with erofs");
    }
    auto made = fixture.store.build(fixture.recipe(), Format::kErofs, kQuiet);
    INFO((made.has_error() ? made.error().message() : ""));
    REQUIRE(made.has_value());
    return std::move(made).value();
}

/// Flips a bit in the middle; size and time stay.
void damage(const std::string& path) {
    struct stat before {};
    REQUIRE(::stat(path.c_str(), &before) == 0);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(before.st_size / 2);
    const int byte = file.get();
    file.seekp(before.st_size / 2);
    file.put(static_cast<char>(byte ^ 1));
    file.close();
    const timespec times[2] = {before.st_mtim, before.st_mtim};
    REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

TEST_CASE("an image file is mounted for this process alone, read-only", "[image][erofs]") {
    ImageFixture fixture;
    const auto record = build_erofs(fixture);
    CHECK_FALSE(fs::exists(fixture.tree_of(record)));  // what was packed is not kept besides
    const auto used = fixture.store.use(record);
    INFO((used.has_error() ? used.error().message() : ""));
    REQUIRE(used.has_value());
    const std::string& root = used.value().root;
    CHECK(slurp(root + "/share/data") == "the first\n");
    CHECK(fs::read_symlink(root + "/bin/link") == "../share/data");
    struct stat tool {};
    struct stat source {};
    REQUIRE(::stat((root + "/bin/tool").c_str(), &tool) == 0);
    REQUIRE(::stat((fixture.host + "/bin/tool").c_str(), &source) == 0);
    CHECK(tool.st_uid == 0);
    CHECK((tool.st_mode & 07777) == 0555);
    CHECK(tool.st_mtim.tv_sec == source.st_mtim.tv_sec);
    CHECK(tool.st_dev != source.st_dev);
    CHECK_FALSE(std::ofstream(root + "/share/planted").good());
    const std::string mine = slurp("/proc/self/mountinfo");
    const std::string of_all = slurp("/proc/1/mountinfo");
    CHECK(mine.find(fixture.store_path) != std::string::npos);
    CHECK(of_all.find(fixture.store_path) == std::string::npos);
    // Again in the same process: the same mount.
    CHECK(fixture.store.use(record).value().root == root);
    CHECK(slurp("/proc/self/mountinfo") == mine);
    REQUIRE(::umount2(root.c_str(), MNT_DETACH) == 0);
}

TEST_CASE("an image file that was changed is refused and removed", "[image][erofs]") {
    ImageFixture fixture;
    const auto record = build_erofs(fixture);
    const std::string directory = fixture.store.directory_of(record);
    SECTION("a bit") {
        damage(directory + "/image.erofs");
    }
    SECTION("cut short") {
        REQUIRE(::truncate((directory + "/image.erofs").c_str(), 1000) == 0);
    }
    SECTION("made longer") {
        std::ofstream(directory + "/image.erofs", std::ios::app) << "x";
    }
    SECTION("gone") {
        fs::remove(directory + "/image.erofs");
    }
    SECTION("a bit of its manifest") {
        damage(directory + "/manifest");
    }
    SECTION("without its manifest") {
        fs::remove(directory + "/manifest");
    }
    SECTION("a link to another file") {
        fs::rename(directory + "/image.erofs", fixture.scratch.path() + "/elsewhere");
        fs::create_symlink(fixture.scratch.path() + "/elsewhere", directory + "/image.erofs");
    }
    SECTION("others may write to it") {
        REQUIRE(::chmod((directory + "/image.erofs").c_str(), 0622) == 0);
    }
    const auto used = fixture.store.use(record);
    REQUIRE(used.has_error());
    CHECK(used.error().code() == ErrorCode::kProtocol);
    CHECK_FALSE(fs::exists(directory));
}

TEST_CASE("an image file that was only copied is read once and used", "[image][erofs]") {
    ImageFixture fixture;
    const auto record = build_erofs(fixture);
    const std::string file = fixture.store.directory_of(record) + "/image.erofs";
    fs::copy_file(file, file + ".new");
    fs::rename(file + ".new", file);
    const auto used = fixture.store.use(record);
    REQUIRE(used.has_value());
    CHECK(used.value().record.identity != record.identity);
    REQUIRE(::umount2(used.value().root.c_str(), MNT_DETACH) == 0);
}

}  // namespace
}  // namespace cellkeep::test
