// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/debian/system_tree.hpp"

#include "protocol/support/syscall.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/unit/environments/tar_text.hpp"

#include <catch2/catch.hpp>

#include <sys/stat.h>

#include <filesystem>
#include <string>

namespace cellkeep::test {
namespace {

namespace fs = std::filesystem;
using environments::place_in_system;
using environments::read_tar;
using environments::SystemTree;

/// A tree in a directory that has something beside it.
struct Tree {
    explicit Tree(
        std::uint64_t bytes_max = 1UL << 20U,
        std::size_t entries_max = environments::kSystemEntriesMax) {
        REQUIRE(write_file_atomically(directory.file("outside"), "the host's", 0600).has_value());
        auto made = SystemTree::create(directory.file("system"), bytes_max, entries_max);
        REQUIRE(made.has_value());
        tree = std::make_unique<SystemTree>(std::move(made).value());
    }
    Status add(const std::string& parts) const {
        const UniqueFd file = file_with(parts + tar_end());
        const auto entries = read_tar(file.get());
        REQUIRE(entries.has_value());
        return tree->add(file.get(), entries.value());
    }
    std::string at(const std::string& path) const { return directory.file("system" + path); }
    std::string text(const std::string& path) const {
        const auto read = read_file(at(path), 1000);
        return read.has_value() ? read.value() : "nothing";
    }
    TemporaryDirectory directory;
    std::unique_ptr<SystemTree> tree;
};

TEST_CASE(
    "what a session has a place for is beneath /usr, /etc and /opt", "[environments][debian]") {
    CHECK(place_in_system("bin/tool") == "usr/bin/tool");
    CHECK(place_in_system("lib/x86_64-linux-gnu/x.so") == "usr/lib/x86_64-linux-gnu/x.so");
    CHECK(place_in_system("lib64/ld.so") == "usr/lib64/ld.so");
    CHECK(place_in_system("usr/share/x/data") == "usr/share/x/data");
    CHECK(place_in_system("usr/share/documents") == "usr/share/documents");
    CHECK(place_in_system("etc/x/x.conf") == "etc/x/x.conf");
    CHECK(place_in_system("etc/default-x") == "etc/default-x");
    CHECK(place_in_system("opt/x/bin/x") == "opt/x/bin/x");
    CHECK(place_in_system("usr") == "usr");
    for (const char* path :
         {"",
          "var/lib/x",
          "run/x",
          "root/.x",
          "home/x",
          "boot/x",
          "dev/null",
          "srv/x",
          "usrx",
          "etc/passwd",
          "etc/resolv.conf",
          "etc/ld.so.preload",
          "etc/cron.daily/x",
          "etc/default/x",
          "opt/cellkeep",
          "opt/cellkeep/bin/x",
          "usr/local/bin/x",
          "usr/share/doc/x/copyright",
          "usr/share/man/man1/x.1.gz",
          "lib/systemd/system/x.service",
          "usr/lib/udev/rules.d/x"}) {
        CAPTURE(path);
        CHECK(place_in_system(path).empty());
    }
}

TEST_CASE("packages lie over each other in one tree", "[environments][debian]") {
    const Tree tree;
    REQUIRE(tree.add(
                    tar_part({"./bin/tool", '0', "first", "", 0755}) +
                    tar_part({"./usr/lib/x.so.1", '2', "", "x.so.1.0"}) +
                    tar_part({"./lib/x.so.1.0", '0', "library"}) +
                    tar_part({"./usr/bin/again", '1', "", "./bin/tool"}) +
                    tar_part({"./usr/share/doc/x/copyright", '0', "no"}) +
                    tar_part({"./var/x", '0', "no"}))
                .has_value());
    REQUIRE(tree.add(tar_part({"usr/bin/tool", '0', "second", "", 0755})).has_value());
    CHECK(tree.text("/usr/bin/tool") == "second");
    CHECK(tree.text("/usr/bin/again") == "first");
    CHECK(tree.text("/usr/lib/x.so.1") == "library");
    CHECK_FALSE(fs::exists(tree.at("/var")));
    CHECK_FALSE(fs::exists(tree.at("/usr/share")));
    CHECK(tree.tree->holds("/bin/tool"));
    CHECK(tree.tree->holds("/usr/lib/x.so.1"));
    CHECK_FALSE(tree.tree->holds("/usr/lib/x.so.2"));
    CHECK(tree.tree->bytes() == 5 + 7 + 6);
}

TEST_CASE("bits, devices and what only root may read are left out", "[environments][debian]") {
    const Tree tree;
    REQUIRE(tree.add(
                    tar_part({"usr/bin/su", '0', "x", "", 06755}) +
                    tar_part({"usr/bin/helper", '0', "x", "", 04750}) +
                    tar_part({"usr/lib/null", '3', "", "", 0666}) +
                    tar_part({"usr/lib/pipe", '6'}) +
                    tar_part({"etc/x/secret", '0', "x", "", 0640}) +
                    tar_part({"usr/lib/second", '1', "", "etc/x/secret"}))
                .has_value());
    struct stat info {};
    REQUIRE(::stat(tree.at("/usr/bin/su").c_str(), &info) == 0);
    CHECK((info.st_mode & 07777) == 0755);
    for (const char* path :
         {"/usr/bin/helper",
          "/usr/lib/null",
          "/usr/lib/pipe",
          "/etc/x/secret",
          "/usr/lib/second"}) {
        CAPTURE(path);
        CHECK_FALSE(fs::exists(tree.at(path)));
    }
}

TEST_CASE(
    "no entry is written outside of the tree, whatever links lie on its way",
    "[environments][debian]") {
    const Tree tree;
    const std::string outside = tree.directory.path();
    REQUIRE(tree.add(
                    tar_part({"usr/share/up", '2', "", "../../.."}) +
                    tar_part({"usr/share/absolute", '2', "", outside}) +
                    tar_part({"usr/share/over", '2', "", "../../../outside"}))
                .has_value());
    // "up" is the tree's own root, as a session's would be.
    CHECK(tree.add(tar_part({"usr/share/up/outside", '0', "changed"})).has_value());
    CHECK(tree.text("/outside") == "changed");
    CHECK(tree.add(tar_part({"usr/share/absolute/outside", '0', "changed"})).has_error());
    CHECK(tree.add(tar_part({"usr/share/over", '0', "changed"})).has_value());  // in its place
    CHECK(
        tree.add(tar_part({"usr/share/same", '1', "", "usr/share/absolute/outside"})).has_value());
    CHECK_FALSE(fs::exists(tree.at("/usr/share/same")));
    CHECK(read_file(tree.directory.file("outside"), 100).value() == "the host's");
    CHECK(tree.directory.entry_count() == 2);
    CHECK_FALSE(tree.tree->holds("/usr/share/absolute/outside"));
    CHECK(tree.tree->read("/usr/share/absolute/outside", 100).has_error());
}

TEST_CASE(
    "a file beneath a file, and one in a folder's place, are refused", "[environments][debian]") {
    const Tree tree;
    REQUIRE(tree.add(tar_part({"usr/a", '0', "x"}) + tar_part({"usr/b/c", '0', "x"})).has_value());
    CHECK(tree.add(tar_part({"usr/a/d", '0', "x"})).error().code() == ErrorCode::kProtocol);
    CHECK(tree.add(tar_part({"usr/a/d/e", '5'})).error().code() == ErrorCode::kProtocol);
    CHECK(tree.add(tar_part({"usr/b", '0', "x"})).error().code() == ErrorCode::kProtocol);
    REQUIRE(tree.add(tar_part({"usr/b", '2', "", "elsewhere"})).has_value());
    CHECK(tree.text("/usr/b/c") == "x");  // a folder stays where another package has a link
}

TEST_CASE("the files of all packages together are bounded", "[environments][debian]") {
    const Tree tree(10);
    REQUIRE(tree.add(tar_part({"usr/a", '0', "12345"})).has_value());
    REQUIRE(tree.add(tar_part({"var/a", '0', "1234567890"})).has_value());
    CHECK(tree.add(tar_part({"usr/b", '0', "123456"})).error().code() == ErrorCode::kLimitExceeded);
}

TEST_CASE("what is made of all packages together is bounded", "[environments][debian]") {
    const auto refused = [](const std::string& parts) {
        const Tree tree(1UL << 20U, 3);
        // usr, usr/a and usr/a/x
        REQUIRE(tree.add(tar_part({"usr/a/x", '0', ""})).has_value());
        REQUIRE(tree.add(tar_part({"usr/a", '5'}) + tar_part({"usr", '5'})).has_value());
        REQUIRE(tree.add(tar_part({"usr/share/doc/x", '0', ""})).has_value());  // is left out
        const Status added = tree.add(parts);
        return added.has_error() && added.error().code() == ErrorCode::kLimitExceeded;
    };
    CHECK(refused(tar_part({"usr/a/y", '0', ""})));
    CHECK(refused(tar_part({"usr/a/x", '0', ""})));  // once more
    CHECK(refused(tar_part({"usr/a/y", '2', "", "x"})));
    CHECK(refused(tar_part({"usr/a/y", '1', "", "usr/a/x"})));
    CHECK(refused(tar_part({"usr/b", '5'})));
    CHECK(refused(tar_part({"usr/a/b/c/d/e/f/g/h", '5'})));
    CHECK_FALSE(refused(tar_part({"var/b", '5'})));
    const Tree tree(1UL << 20U, 1);
    REQUIRE(tree.tree->add_link("/usr/share/man/man1/x.1.gz", "/x").has_value());
    CHECK(tree.tree->add_link("/usr/y", "/x").error().code() == ErrorCode::kLimitExceeded);
}

TEST_CASE("a link is made where nothing is", "[environments][debian]") {
    const Tree tree;
    REQUIRE(tree.add(tar_part({"usr/bin/x", '0', "x"})).has_value());
    REQUIRE(tree.tree->add_link("/usr/bin/x", "/etc/alternatives/x").has_value());
    CHECK(tree.text("/usr/bin/x") == "x");
    REQUIRE(tree.tree->add_link("/usr/bin/y", "/usr/bin/x").has_value());
    CHECK(fs::read_symlink(tree.at("/usr/bin/y")) == "/usr/bin/x");
    CHECK(tree.tree->holds("/usr/bin/y"));
    REQUIRE(tree.tree->add_link("/usr/share/man/man1/x.1.gz", "/x").has_value());
    CHECK_FALSE(fs::exists(fs::symlink_status(tree.at("/usr/share/man"))));
    CHECK(tree.tree->names_in("/usr/bin") == std::vector<std::string>{"x", "y"});
    CHECK(tree.tree->names_in("/nothing").empty());
}

}  // namespace
}  // namespace cellkeep::test
