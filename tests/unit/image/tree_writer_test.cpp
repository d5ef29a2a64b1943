// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/image/tree_writer.hpp"

#include "tests/unit/image/image_fixture.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <vector>

namespace cellkeep::image {
namespace {

namespace fs = std::filesystem;

struct Desk {
    Desk() : host(scratch.path() + "/host"), out(scratch.path() + "/out") {
        fs::create_directories(host);
        fs::create_directories(out);
    }
    TreeWriter writer() const {
        auto made = TreeWriter::create(out);
        REQUIRE(made.has_value());
        return std::move(made).value();
    }
    test::TemporaryDirectory scratch;
    std::string host;
    std::string out;
};

TEST_CASE("a tree is copied with its links, times and rights, into inodes of its own", "[image]") {
    const Desk desk;
    test::write_host_file(desk.host + "/a/tool", "run", 04755);
    test::write_host_file(desk.host + "/a/data", "text", 0644);
    fs::create_symlink("data", desk.host + "/a/link");
    fs::create_symlink("/nowhere", desk.host + "/a/dangling");
    const timespec times[2] = {{1'600'000'000, 0}, {1'600'000'000, 999}};
    REQUIRE(::utimensat(AT_FDCWD, (desk.host + "/a/data").c_str(), times, 0) == 0);
    TreeWriter writer = desk.writer();
    REQUIRE(writer.add_tree(desk.host + "/a", "opt/a").has_value());
    CHECK(test::slurp(desk.out + "/opt/a/data") == "text");
    CHECK(fs::read_symlink(desk.out + "/opt/a/link") == "data");
    CHECK(fs::read_symlink(desk.out + "/opt/a/dangling") == "/nowhere");
    struct stat copy {};
    struct stat source {};
    REQUIRE(::lstat((desk.out + "/opt/a/tool").c_str(), &copy) == 0);
    REQUIRE(::lstat((desk.host + "/a/tool").c_str(), &source) == 0);
    CHECK((copy.st_mode & 07777) == 0555);
    CHECK(copy.st_ino != source.st_ino);
    REQUIRE(::lstat((desk.out + "/opt/a/data").c_str(), &copy) == 0);
    CHECK(copy.st_mtim.tv_sec == 1'600'000'000);
    CHECK((copy.st_mode & 07777) == 0444);
    CHECK(writer.manifest().entries.size() == 6);
    CHECK(writer.manifest().entries.at("opt/a/tool").executable);
    CHECK(writer.manifest().bytes() == 7);
}

TEST_CASE("whatever the umask, all may enter the directories of an image", "[image]") {
    const Desk desk;
    test::write_host_file(desk.host + "/a/inner/data", "text", 0644);
    REQUIRE(::chmod(desk.out.c_str(), S_IRWXU) == 0);
    const mode_t before = ::umask(S_IRWXG | S_IRWXO);
    TreeWriter writer = desk.writer();
    const Status copied = writer.add_tree(desk.host + "/a", "opt/a");
    (void)::umask(before);
    REQUIRE(copied.has_value());
    for (const char* name : {"", "/opt", "/opt/a", "/opt/a/inner"}) {
        CAPTURE(name);
        struct stat made {};
        REQUIRE(::lstat((desk.out + name).c_str(), &made) == 0);
        CHECK((made.st_mode & 07777) == 0755);
    }
}

TEST_CASE("files that are not readable by all, and special files, are left out", "[image]") {
    const Desk desk;
    test::write_host_file(desk.host + "/a/secret", "mine", 0640);
    test::write_host_file(desk.host + "/a/closed/inner", "mine");
    test::write_host_file(desk.host + "/a/open", "yours");
    REQUIRE(::chmod((desk.host + "/a/closed").c_str(), 0750) == 0);
    REQUIRE(::mkfifo((desk.host + "/a/fifo").c_str(), 0666) == 0);
    const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = desk.host + "/a/socket";
    REQUIRE(path.size() < sizeof(address.sun_path));
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    REQUIRE(::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    ::close(socket);
    TreeWriter writer = desk.writer();
    REQUIRE(writer.add_tree(desk.host + "/a", "a").has_value());
    REQUIRE(writer.add_entry(desk.host + "/a/secret", "b/secret").has_value());
    REQUIRE(writer.add_file(desk.host + "/a/fifo", "b/fifo").has_value());
    REQUIRE(writer.add_file(desk.host + "/absent", "b/absent").has_value());
    for (const char* name :
         {"a/secret",
          "a/closed",
          "a/closed/inner",
          "a/fifo",
          "a/socket",
          "b/secret",
          "b/fifo",
          "b/absent"}) {
        CAPTURE(name);
        CHECK_FALSE(writer.holds(name));
        CHECK_FALSE(fs::exists(fs::symlink_status(desk.out + "/" + name)));
    }
    CHECK(writer.holds("a/open"));
}

TEST_CASE("a long copy reports its progress to the caller", "[image]") {
    const Desk desk;
    for (const char* name : {"a", "b", "c", "d", "e"}) {
        test::write_host_file(desk.host + "/" + name, "four");
    }
    test::write_host_file(desk.host + "/empty", "");
    TreeWriter writer = desk.writer();
    REQUIRE(writer.add_file(desk.host + "/a", "a").has_value());
    std::vector<std::uint64_t> heard;
    writer.watch(8, [&heard](std::uint64_t bytes) { heard.push_back(bytes); });
    for (const char* name : {"b", "empty", "c", "d", "e"}) {
        REQUIRE(writer.add_file(desk.host + "/" + name, name).has_value());
    }
    CHECK(heard == std::vector<std::uint64_t>{12, 20});
}

TEST_CASE("nothing is written through a link that was copied", "[image]") {
    const Desk desk;
    const std::string outside = desk.scratch.path() + "/outside";
    fs::create_directories(outside);
    fs::create_symlink(outside, desk.host + "/door");
    test::write_host_file(desk.host + "/file", "planted");
    TreeWriter writer = desk.writer();
    REQUIRE(writer.add_entry(desk.host + "/door", "door").has_value());
    REQUIRE(writer.add_entry(desk.host + "/file", "door/file").has_value());
    REQUIRE(writer.add_tree(desk.host, "door/all").has_value());
    CHECK(fs::is_empty(outside));
    CHECK_FALSE(writer.holds("door/file"));
    // The first one stays.
    REQUIRE(writer.add_entry(desk.host + "/file", "door").has_value());
    CHECK(writer.manifest().entries.at("door").type == EntryType::kLink);
}

TEST_CASE("what an interrupted copy finished is read, and the rest is written", "[image]") {
    const Desk desk;
    test::write_host_file(desk.host + "/done", "finished");
    test::write_host_file(desk.host + "/half", "finished");
    test::write_host_file(desk.host + "/newer", "finished");
    const timespec before[2] = {{1'700'000'000, 0}, {1'700'000'000, 0}};
    REQUIRE(::utimensat(AT_FDCWD, (desk.host + "/newer").c_str(), before, 0) == 0);
    test::write_host_file(desk.host + "/tool", "finished", 0755);
    fs::create_symlink("done", desk.host + "/link");
    fs::create_directories(desk.host + "/folder");
    Manifest first;
    {
        TreeWriter writer = desk.writer();
        REQUIRE(writer.add_tree(desk.host, "all").has_value());
        first = writer.manifest();
    }
    struct stat kept {};
    REQUIRE(::stat((desk.out + "/all/done").c_str(), &kept) == 0);
    // As a killed writer leaves a file: no rights of a copy, not all of the bytes.
    REQUIRE(::chmod((desk.out + "/all/half").c_str(), 0600) == 0);
    REQUIRE(::truncate((desk.out + "/all/half").c_str(), 3) == 0);
    test::change(desk.out + "/all/newer", "finishes");  // its time is another one than the source's
    REQUIRE(::chmod((desk.out + "/all/tool").c_str(), 0444) == 0);
    fs::remove(desk.out + "/all/link");
    fs::create_symlink("/etc/passwd", desk.out + "/all/link");
    fs::remove(desk.out + "/all/folder");
    fs::create_symlink(desk.host, desk.out + "/all/folder");
    test::write_host_file(desk.out + "/all/gone/one", "the source had it before");
    TreeWriter writer = desk.writer();
    REQUIRE(writer.add_tree(desk.host, "all").has_value());
    REQUIRE(writer.remove_others().has_value());
    CHECK(writer.manifest().to_text() == first.to_text());
    struct stat now {};
    REQUIRE(::stat((desk.out + "/all/done").c_str(), &now) == 0);
    CHECK(now.st_ino == kept.st_ino);
    for (const char* name : {"done", "half", "newer", "tool"}) {
        CHECK(test::slurp(desk.out + "/all/" + name) == "finished");
    }
    CHECK(fs::read_symlink(desk.out + "/all/link") == "done");
    CHECK(fs::is_directory(fs::symlink_status(desk.out + "/all/folder")));
    CHECK_FALSE(fs::exists(desk.out + "/all/gone"));
}

TEST_CASE("a folder where a file belongs is no copy of the file", "[image]") {
    const Desk desk;
    test::write_host_file(desk.host + "/file", "x");
    fs::create_directories(desk.out + "/file/full");
    TreeWriter writer = desk.writer();
    CHECK(writer.add_entry(desk.host + "/file", "file").has_error());
}

TEST_CASE("a target that is no clean path inside is refused", "[image]") {
    const Desk desk;
    test::write_host_file(desk.host + "/file", "x");
    TreeWriter writer = desk.writer();
    for (const char* target : {"", "/file", "..", "../file", "a/../../file", "a//b", "./a", "a/"}) {
        CAPTURE(target);
        const auto added = writer.add_entry(desk.host + "/file", target);
        REQUIRE(added.has_error());
        CHECK(added.error().code() == ErrorCode::kInvalidArgument);
    }
    CHECK(writer.manifest().entries.empty());
    CHECK(TreeWriter::create(desk.host + "/absent").has_error());
    fs::create_symlink(desk.out, desk.host + "/to-out");
    CHECK(TreeWriter::create(desk.host + "/to-out").has_error());
}

}  // namespace
}  // namespace cellkeep::image
