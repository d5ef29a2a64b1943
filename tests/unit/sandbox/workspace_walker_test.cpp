// SPDX-License-Identifier: Apache-2.0
#include "sandbox/workspace/workspace_walker.hpp"

#include "tests/support/temporary_workspace.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <vector>

namespace cellkeep::sandbox {
namespace {

using cellkeep::test::TemporaryWorkspace;

std::vector<std::string> walk(WorkspaceWalker& walker) {
    std::vector<std::string> paths;
    while (const auto entry = walker.next()) {
        paths.push_back(entry->path);
    }
    return paths;
}

TEST_CASE("a walk names directories before what is in them, in order", "[walker]") {
    const TemporaryWorkspace files;
    files.write("b/c", "1");
    files.write("a", "22");
    files.make_directory("d");
    WorkspaceWalker walker(files.workspace(), "");
    CHECK(walk(walker) == std::vector<std::string>{"a", "b", "b/c", "d"});
    CHECK(walker.complete());
    WorkspaceWalker below(files.workspace(), "b");
    CHECK(walk(below) == std::vector<std::string>{"b/c"});
}

TEST_CASE("a walk leaves out what is the server's, and follows no link", "[walker]") {
    const TemporaryWorkspace files;
    files.write(".cellkeep/exe_1/stdout.txt", "x");
    files.write("d/.cellkeep-upload-0123", "x");
    files.write("d/.cellkeep/kept", "x");
    std::filesystem::create_directory_symlink("/etc", files.path("link"));
    WorkspaceWalker walker(files.workspace(), "");
    CHECK(walk(walker) == std::vector<std::string>{"d", "d/.cellkeep", "d/.cellkeep/kept", "link"});
    CHECK(is_server_path(".cellkeep"));
    CHECK(is_server_path(".cellkeep/x"));
    CHECK_FALSE(is_server_path(".cellkeeper"));
}

TEST_CASE("a walk takes names of any bytes and every kind of file", "[walker]") {
    const TemporaryWorkspace files;
    files.write("new\nline", "x");
    files.write("\xff\xfe", "x");
    REQUIRE(::mkfifo(files.path("fifo").c_str(), 0600) == 0);
    WorkspaceWalker walker(files.workspace(), "");
    std::vector<EntryKind> kinds;
    while (const auto entry = walker.next()) {
        kinds.push_back(entry->state.kind);
    }
    CHECK(kinds == std::vector<EntryKind>{EntryKind::kOther, EntryKind::kFile, EntryKind::kFile});
    CHECK(walker.complete());
}

TEST_CASE("a walk ends at kWalkDepthMax and says so", "[walker]") {
    const TemporaryWorkspace files;
    std::string path = "d";
    // Directories in one another: the workspace is the first.
    for (std::size_t depth = 2; depth < kWalkDepthMax; ++depth) {
        path += "/d";
    }
    files.make_directory(path);
    WorkspaceWalker at_most(files.workspace(), "");
    CHECK(walk(at_most).size() == kWalkDepthMax - 1);
    CHECK(at_most.complete());
    files.make_directory(path + "/d");
    WorkspaceWalker beyond(files.workspace(), "");
    CHECK(walk(beyond).size() == kWalkDepthMax);  // it is named, and not entered
    CHECK_FALSE(beyond.complete());
}

TEST_CASE("a walk ends at kWalkEntriesMax and says so", "[walker]") {
    const TemporaryWorkspace files;
    for (std::size_t i = 0; i < kWalkEntriesMax; ++i) {
        const UniqueFd made(
            ::open(files.path(std::to_string(i)).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        REQUIRE(made.valid());
    }
    WorkspaceWalker at_most(files.workspace(), "");
    CHECK(walk(at_most).size() == kWalkEntriesMax);
    CHECK(at_most.complete());
    files.write("one more", "");
    WorkspaceWalker beyond(files.workspace(), "");
    CHECK(walk(beyond).size() == kWalkEntriesMax);
    CHECK_FALSE(beyond.complete());
}

TEST_CASE("a walk bounds the bytes of the names that wait", "[walker]") {
    // kWalkNameBytesMax: names of full length in a deep directory reach it before
    // kWalkEntriesMax does.
    const TemporaryWorkspace files;
    const std::string deep =
        std::string(200, 'a') + "/" + std::string(200, 'b') + "/" + std::string(200, 'c');
    files.make_directory(deep);
    const std::size_t each = deep.size() + 1 + 255;
    const std::size_t fit = kWalkNameBytesMax / each;
    for (std::size_t i = 0; i <= fit; ++i) {
        std::string name = std::to_string(i);
        name += std::string(255 - name.size(), 'x');
        const UniqueFd made(
            ::open(files.path(deep + "/" + name).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        REQUIRE(made.valid());
    }
    WorkspaceWalker walker(files.workspace(), "");
    CHECK(walk(walker).size() == fit + 3);
    CHECK_FALSE(walker.complete());
}

TEST_CASE("a directory that vanishes during a walk is left out", "[walker]") {
    const TemporaryWorkspace files;
    files.write("d/x", "1");
    WorkspaceWalker walker(files.workspace(), "");
    REQUIRE(walker.next()->path == "d");
    std::filesystem::remove_all(files.path("d"));
    CHECK_FALSE(walker.next().has_value());
    CHECK(walker.complete());
}

}  // namespace
}  // namespace cellkeep::sandbox
