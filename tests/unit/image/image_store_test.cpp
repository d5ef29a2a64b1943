// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/image/image_store.hpp"

#include "kernel-manager/image/image_scratch.hpp"
#include "kernel-manager/image/image_verify.hpp"
#include "tests/unit/image/image_fixture.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::test {
namespace {

namespace fs = std::filesystem;
using image::Format;
using image::Store;

bool is_there(const ImageFixture& fixture, const image::Recipe& recipe) {
    auto found = fixture.store.find(recipe, Format::kTree);
    REQUIRE(found.has_value());
    return found.value().has_value();
}

/// Shows that a damaged image is refused and can be built again.
void check_refused(ImageFixture& fixture, const image::ImageRecord& record) {
    const auto used = fixture.store.use(record);
    REQUIRE(used.has_error());
    CHECK(used.error().code() == ErrorCode::kProtocol);
    CHECK_FALSE(is_there(fixture, fixture.recipe()));
    CHECK_FALSE(fs::exists(fixture.store.directory_of(record)));
    CHECK(fixture.store.use(fixture.build(fixture.recipe())).has_value());
}

TEST_CASE("an image is what the host's files were when it was made", "[image][store]") {
    ImageFixture fixture;
    CHECK_FALSE(is_there(fixture, fixture.recipe()));
    const auto record = fixture.build(fixture.recipe());
    CHECK(image::is_digest(record.digest));
    change(fixture.host + "/share/data", "changed\n");
    write_host_file(fixture.host + "/share/more", "more\n");
    const auto used = fixture.store.use(record);
    REQUIRE(used.has_value());
    CHECK(slurp(used.value().root + "/share/data") == "the first\n");
    CHECK_FALSE(fs::exists(used.value().root + "/share/more"));
    CHECK(fs::read_symlink(used.value().root + "/bin/link") == "../share/data");
    CHECK(fixture.folders() == 1);
}

TEST_CASE("the digest is of the contents: the same twice, another for others", "[image][store]") {
    ImageFixture one;
    ImageFixture two;
    const timespec times[2] = {{1'700'000'000, 0}, {1'700'000'000, 0}};
    for (const ImageFixture* fixture : {&one, &two}) {
        for (const char* name : {"/bin/tool", "/share/data"}) {
            REQUIRE(::utimensat(AT_FDCWD, (fixture->host + name).c_str(), times, 0) == 0);
        }
    }
    CHECK(one.build(one.recipe()).digest == two.build(two.recipe('b')).digest);
    change(two.host + "/share/data", "the other\n");
    REQUIRE(::utimensat(AT_FDCWD, (two.host + "/share/data").c_str(), times, 0) == 0);
    CHECK(one.build(one.recipe()).digest != two.build(two.recipe('c')).digest);
}

TEST_CASE("an image that was changed is refused, removed and made again", "[image][store]") {
    ImageFixture fixture;
    const auto record = fixture.build(fixture.recipe());
    const std::string tree = fixture.tree_of(record);
    SECTION("a byte of a file, its size and time kept") {
        struct stat before {};
        REQUIRE(::stat((tree + "/share/data").c_str(), &before) == 0);
        change(tree + "/share/data", "the fiRst\n");
        const timespec times[2] = {before.st_mtim, before.st_mtim};
        REQUIRE(::utimensat(AT_FDCWD, (tree + "/share/data").c_str(), times, 0) == 0);
    }
    SECTION("a file that is cut short") {
        REQUIRE(::chmod((tree + "/share/data").c_str(), 0644) == 0);
        REQUIRE(::truncate((tree + "/share/data").c_str(), 3) == 0);
        REQUIRE(::chmod((tree + "/share/data").c_str(), 0444) == 0);
    }
    SECTION("a file that is gone") {
        fs::remove(tree + "/share/data");
    }
    SECTION("a file too many") {
        write_host_file(tree + "/share/planted", "x", 0444);
    }
    SECTION("a program that is no longer executable") {
        REQUIRE(::chmod((tree + "/bin/tool").c_str(), 0444) == 0);
    }
    SECTION("a file others may write to") {
        REQUIRE(::chmod((tree + "/share/data").c_str(), 0666) == 0);
    }
    SECTION("a link that leads elsewhere") {
        fs::remove(tree + "/bin/link");
        fs::create_symlink("/etc/shadow", tree + "/bin/link");
    }
    SECTION("a file instead of a link") {
        fs::remove(tree + "/bin/link");
        write_host_file(tree + "/bin/link", "x", 0444);
    }
    SECTION("another manifest") {
        const std::string manifest = fixture.store.directory_of(record) + "/manifest";
        std::string text = slurp(manifest);
        text[text.size() / 2] ^= 1;
        change(manifest, text);
    }
    SECTION("no manifest") {
        fs::remove(fixture.store.directory_of(record) + "/manifest");
    }
    SECTION("no tree") {
        fs::remove_all(tree);
    }
    check_refused(fixture, record);
}

TEST_CASE("an image whose inodes changed but not their contents is read once and used", "[image]") {
    ImageFixture fixture;
    const auto record = fixture.build(fixture.recipe());
    const std::string data = fixture.tree_of(record) + "/share/data";
    REQUIRE(::chmod(data.c_str(), 0644) == 0);
    REQUIRE(::chmod(data.c_str(), 0444) == 0);  // the change time is another
    const auto used = fixture.store.use(record);
    REQUIRE(used.has_value());
    CHECK(used.value().record.identity != record.identity);
    const auto again = fixture.store.use(record);
    REQUIRE(again.has_value());
    CHECK(again.value().record.identity == used.value().record.identity);
}

TEST_CASE("what is not whole is not in the list, and the next build removes it", "[image][store]") {
    ImageFixture fixture;
    // The remains of a killed build, and a folder that is not an image.
    write_host_file(fixture.store_path + "/unfinished-1/tree/bin/tool", "half", 0755);
    write_host_file(fixture.store_path + "/programs-tree-" + std::string(64, 'a') + "/x", "x");
    write_host_file(fixture.store_path + "/other/record.json", "{}");
    CHECK(fixture.store.list().value().empty());
    image::Recipe recipe = fixture.recipe();
    recipe.kind = image::Kind::kEnvironment;
    const auto record = fixture.build(recipe);
    CHECK_FALSE(fs::exists(fixture.store_path + "/unfinished-1"));
    CHECK(fixture.store.list().value().size() == 1);
    // A record under another image's name is not listed.
    fs::rename(
        fixture.store.directory_of(record),
        fixture.store_path + "/programs-tree-" + std::string(64, 'b'));
    CHECK(fixture.store.list().value().empty());
}

TEST_CASE("a build goes on where a killed one of the same recipe was", "[image][store]") {
    ImageFixture fixture;
    const auto recipe = fixture.recipe();
    const auto name = image::scratch_name(recipe, Format::kTree);
    REQUIRE(name.has_value());
    const std::string half = fixture.store_path + "/" + name.value();
    fs::create_directories(half + "/tree/share");
    fs::copy_file(fixture.host + "/share/data", half + "/tree/share/data");
    struct stat source {};
    REQUIRE(::stat((fixture.host + "/share/data").c_str(), &source) == 0);
    const timespec times[2] = {{source.st_mtim.tv_sec, 0}, {source.st_mtim.tv_sec, 0}};
    REQUIRE(::utimensat(AT_FDCWD, (half + "/tree/share/data").c_str(), times, 0) == 0);
    REQUIRE(::chmod((half + "/tree/share/data").c_str(), 0444) == 0);
    REQUIRE(::stat((half + "/tree/share/data").c_str(), &source) == 0);
    write_host_file(half + "/tree/left/over", "of a source that is gone");
    write_host_file(half + "/image.erofs", "half");
    // Not of this recipe, and of a build of the other kind that may go on.
    const auto other = image::scratch_name(fixture.recipe('b'), Format::kTree);
    write_host_file(fixture.store_path + "/" + other.value() + "/tree/x", "x");
    const std::string running = fixture.store_path + "/building-environment-0123456789abcdef";
    const std::string removed = fixture.store_path + "/unfinished-0123456789abcdef";
    write_host_file(running + "/tree/x", "x");
    write_host_file(removed + "/tree/x", "x");

    std::vector<std::string> said;
    const auto record = fixture.store.build(
        recipe, Format::kTree, [&said](const std::string& line) { said.push_back(line); });
    REQUIRE(record.has_value());
    CHECK(said == std::vector<std::string>{"going on with what an interrupted build has copied"});
    struct stat now {};
    REQUIRE(::stat((fixture.tree_of(record.value()) + "/share/data").c_str(), &now) == 0);
    CHECK(now.st_ino == source.st_ino);
    CHECK_FALSE(fs::exists(fixture.tree_of(record.value()) + "/left"));
    CHECK(fixture.store.use(record.value()).has_value());
    CHECK_FALSE(fs::exists(half));
    CHECK_FALSE(fs::exists(fixture.store_path + "/" + other.value()));
    CHECK(fs::exists(running));
    CHECK(fs::exists(removed));
}

TEST_CASE("a build that fails leaves nothing", "[image][store]") {
    ImageFixture fixture;
    image::Recipe recipe = fixture.recipe();
    recipe.copies.push_back({image::Copy::How::kFile, fixture.host + "/share/data", "../escape"});
    CHECK(fixture.store.build(recipe, Format::kTree, kQuiet).has_error());
    CHECK(fixture.folders() == 0);
    CHECK_FALSE(is_there(fixture, recipe));
}

TEST_CASE("a look into an empty store leaves no file there", "[image][store]") {
    ImageFixture fixture;
    CHECK(fixture.store.list().value().empty());
    CHECK(fs::is_empty(fixture.store_path));
    (void)fixture.build(fixture.recipe());
    CHECK(fixture.store.list().value().size() == 1);
}

TEST_CASE("two that build the same at once make one image", "[image][store]") {
    ImageFixture fixture;
    const auto make = [&fixture] {
        auto store = Store::open(fixture.store_path);
        return store.value().build(fixture.recipe(), Format::kTree, kQuiet);
    };
    auto other = std::async(std::launch::async, make);
    const auto one = make();
    const auto two = other.get();
    REQUIRE(one.has_value());
    REQUIRE(two.has_value());
    CHECK(one.value().built_at == two.value().built_at);
    CHECK(fixture.folders() == 1);
}

TEST_CASE("an image in use is not removed, by name or by age", "[image][store]") {
    ImageFixture fixture;
    const auto record = fixture.build(fixture.recipe());
    auto used = fixture.store.use(record);
    REQUIRE(used.has_value());
    CHECK(fixture.store.list().value()[0].in_use);
    CHECK(fixture.store.remove(record).error().code() == ErrorCode::kConflict);
    CHECK(fixture.store.remove_unused().value() == 0);
    for (char name = '0'; name < '8'; ++name) {
        write_host_file(fixture.host + "/share/data", std::string(1, name));
        (void)fixture.build(fixture.recipe(name));
    }
    CHECK(is_there(fixture, fixture.recipe()));
    CHECK(fixture.store.use(record).has_value());
    used.value().lease.reset();
    CHECK_FALSE(fixture.store.list().value()[0].in_use);
    CHECK(fixture.store.remove(record).has_value());
    CHECK_FALSE(is_there(fixture, fixture.recipe()));
    CHECK(fixture.store.use(record).has_error());
}

TEST_CASE(
    "an image that is damaged while a session uses it is refused to others", "[image][store]") {
    ImageFixture fixture;
    const auto record = fixture.build(fixture.recipe());
    auto used = fixture.store.use(record);
    REQUIRE(used.has_value());
    fs::remove(fixture.tree_of(record) + "/share/data");
    const auto refused = fixture.store.use(record);
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kProtocol);
    CHECK_FALSE(is_there(fixture, fixture.recipe()));
    // It cannot be built again in the same place, and its user keeps the files it has.
    const auto rebuilt =
        fixture.store.build(fixture.recipe(), Format::kTree, [](const std::string&) {});
    REQUIRE(rebuilt.has_error());
    CHECK(rebuilt.error().code() == ErrorCode::kConflict);
    CHECK(rebuilt.error().message().find("another server uses it") != std::string::npos);
    CHECK(fs::exists(used.value().root + "/bin/tool"));
    used.value().lease.reset();
    const auto again = fixture.build(fixture.recipe());
    CHECK(again.digest == record.digest);
    CHECK(fixture.store.use(again).has_value());
    CHECK(slurp(fixture.tree_of(again) + "/share/data") == "the first\n");
}

/// Sets its last use to `seconds` after a time that just no longer counts as recent.
void let_rest(const ImageFixture& fixture, const image::ImageRecord& record, int seconds) {
    const auto then = fs::file_time_type::clock::now() - image::kRecentUse - std::chrono::hours(1);
    fs::last_write_time(
        fixture.store.directory_of(record) + "/use", then + std::chrono::seconds(seconds));
}

TEST_CASE(
    "of unused images the last used stay, at most the number kept of their kind",
    "[image][store]") {
    ImageFixture fixture;
    const auto build = [&fixture](image::Kind kind, std::size_t i) {
        image::Recipe recipe = fixture.recipe(static_cast<char>('0' + i));
        recipe.kind = kind;
        write_host_file(
            fixture.host + "/share/data",
            std::string(image::to_string(kind)) + " " + std::to_string(i));
        return fixture.build(recipe);
    };
    const auto [kind, kept] = GENERATE(table<image::Kind, std::size_t>({
        {image::Kind::kPrograms, image::kProgramImagesKept},
        {image::Kind::kEnvironment, image::kEnvironmentImagesKept},
    }));
    std::vector<image::ImageRecord> made;
    for (std::size_t i = 0; i <= kept; ++i) {
        made.push_back(build(kind, i));
    }
    CHECK(fixture.folders() == kept + 1);  // all of them were used just now
    for (std::size_t i = 0; i <= kept; ++i) {
        let_rest(fixture, made[i], static_cast<int>(i));
    }
    REQUIRE(fixture.store.use(made[0]).has_value());
    (void)build(kind, kept + 1);
    CHECK(fixture.folders() == kept);
    CHECK(fs::exists(fixture.store.directory_of(made[0])));
    CHECK_FALSE(fs::exists(fixture.store.directory_of(made[1])));
    CHECK_FALSE(fs::exists(fixture.store.directory_of(made[2])));
    const auto other =
        kind == image::Kind::kPrograms ? image::Kind::kEnvironment : image::Kind::kPrograms;
    (void)build(other, 0);
    CHECK(fixture.folders() == kept + 1);  // the kinds are counted apart
    CHECK(fixture.store.remove_unused().value() == kept + 1);
    CHECK(fixture.folders() == 0);
}

TEST_CASE("an image is found by its digest or a beginning that only it has", "[image][store]") {
    ImageFixture fixture;
    const auto record = fixture.build(fixture.recipe());
    const std::string hex = record.digest.substr(7);
    for (const std::string& name :
         {record.digest, hex, hex.substr(0, 12), "sha256:" + hex.substr(0, 8)}) {
        CAPTURE(name);
        CHECK(fixture.store.find(name, std::nullopt).has_value());
    }
    for (const std::string& name :
         {std::string(),
          std::string("sha256"),
          hex + "0",
          "x" + hex,
          hex.substr(1),
          std::string("host")}) {
        CAPTURE(name);
        CHECK(fixture.store.find(name, std::nullopt).error().code() == ErrorCode::kNotFound);
    }
    CHECK(fixture.store.find(hex, image::Kind::kEnvironment).has_error());
}

TEST_CASE("a store that is not this user's alone is refused", "[image][store]") {
    const TemporaryDirectory scratch;
    const std::string path = scratch.path() + "/images";
    REQUIRE(Store::open(path).has_value());
    for (const unsigned mode : {0750U, 0705U, 0770U, 0777U, 0720U}) {
        CAPTURE(mode);
        REQUIRE(::chmod(path.c_str(), mode) == 0);
        CHECK(Store::open(path).error().code() == ErrorCode::kPermissionDenied);
    }
    REQUIRE(::chmod(path.c_str(), 0700) == 0);
    CHECK(Store::open(path).has_value());
    fs::create_symlink(path, scratch.path() + "/link");
    CHECK(Store::open(scratch.path() + "/link").has_error());
    write_host_file(scratch.path() + "/file", "x");
    CHECK(Store::open(scratch.path() + "/file").has_error());
    if (::geteuid() == 0) {
        REQUIRE(::chown(path.c_str(), 65534, 65534) == 0);
        CHECK(Store::open(path).error().code() == ErrorCode::kPermissionDenied);
    }
}

}  // namespace
}  // namespace cellkeep::test
