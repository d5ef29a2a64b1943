// SPDX-License-Identifier: Apache-2.0
//
// The server's file operations against a workspace whose owner sets traps.
#include "sandbox/workspace/workspace.hpp"

#include "tests/sandbox/fixture.hpp"

#include <catch2/catch.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <utility>

namespace cellkeep::test {

using sandbox::EntryKind;
using sandbox::Policy;
using sandbox::Workspace;

namespace {

template <typename T>
ErrorCode code_of(const Result<T>& result) {
    REQUIRE(result.has_error());
    return result.error().code();
}

}  // namespace

TEST_CASE("a file written by the server belongs to the guest, and the other way round works too") {
    auto sandbox = make_sandbox();
    const Workspace workspace(sandbox);
    require_ok(workspace.write_file("data/input.csv", "a,b\n1,2\n"));
    CHECK(
        run_inside(sandbox, {"/usr/bin/stat", "-c", "%u %g %a", "data/input.csv"}).out ==
        "1000 1000 644\n");
    CHECK(
        run_inside(sandbox, {"/usr/bin/sh", "-c", "cat data/input.csv; echo 3,4 >> data/input.csv"})
            .out == "a,b\n1,2\n");
    auto file = workspace.open_for_reading("data/input.csv");
    REQUIRE(file.has_value());
    CHECK(file.value().bytes == 12);
    CHECK(read_all(file.value().fd.get()) == "a,b\n1,2\n3,4\n");
    struct stat info {};
    REQUIRE(::fstat(file.value().fd.get(), &info) == 0);
    CHECK(info.st_uid == sandbox.file_uid());
    CHECK(info.st_uid != 0);
    require_ok(workspace.remove("data/input.csv"));
    require_ok(workspace.remove("data"));
    CHECK(workspace.list("").value().empty());
}

TEST_CASE("links, fifos, sockets and devices that a guest plants are refused at once") {
    auto sandbox = make_sandbox();
    const Workspace workspace(sandbox);
    CHECK(
        run_python(sandbox, R"(
import os, socket
os.symlink("/etc/passwd", "absolute")
os.symlink("../../../etc/passwd", "climbing")
os.symlink("/proc/self/root", "magic")
os.symlink(".", "loop")
os.symlink("/", "root")
os.mkfifo("fifo")
socket.socket(socket.AF_UNIX).bind("socket")
os.mkdir("directory")
)")
            .status == 0);
    for (const char* link :
         {"absolute", "climbing", "magic", "magic/etc/passwd", "loop/fifo", "root/etc/passwd"}) {
        INFO(link);
        CHECK(code_of(workspace.open_for_reading(link)) == ErrorCode::kInvalidArgument);
    }
    for (const char* other : {"fifo", "socket", "directory"}) {
        INFO(other);
        CHECK(code_of(workspace.open_for_reading(other)) == ErrorCode::kInvalidArgument);
    }
    for (const char* through : {"root/tmp/x", "loop/x", "magic/tmp/x"}) {
        INFO(through);
        CHECK(workspace.write_file(through, "x").has_error());
        CHECK(workspace.remove(through).has_error());
        CHECK(workspace.list(through).has_error());
    }
    CHECK(code_of(workspace.open_for_reading("missing")) == ErrorCode::kNotFound);
    CHECK(workspace.stat("absolute").value().kind == EntryKind::kOther);
    CHECK(workspace.stat("directory").value().kind == EntryKind::kDirectory);
    // Writing replaces the link and not what it points to.
    require_ok(workspace.write_file("absolute", "mine"));
    CHECK(workspace.stat("absolute").value().kind == EntryKind::kFile);
    CHECK(workspace.write_file("directory", "x").has_error());
}

TEST_CASE("a directory is listed in order, without half-written uploads") {
    auto sandbox = make_sandbox();
    const Workspace workspace(sandbox);
    require_ok(workspace.write_file("b", "22"));
    require_ok(workspace.write_file("a", "1"));
    require_ok(workspace.write_file("folder/c", "333"));
    {
        auto upload = workspace.begin_upload("pending");
        REQUIRE(upload.has_value());
        require_ok(upload.value().append("half"));
        const auto entries = workspace.list("");
        REQUIRE(entries.has_value());
        REQUIRE(entries.value().size() == 3);
        CHECK(entries.value()[0].path == "a");
        CHECK(entries.value()[1].bytes == 2);
        CHECK(entries.value()[2].kind == EntryKind::kDirectory);
        CHECK(workspace.list("folder").value()[0].path == "folder/c");
    }
    CHECK(run_inside(sandbox, {"/usr/bin/ls", "-A"}).out == "a\nb\nfolder\n");
    CHECK(code_of(workspace.list("a")) == ErrorCode::kNotFound);
}

TEST_CASE("a full workspace is a limit that was exceeded, and the upload leaves nothing") {
    Policy policy = test_policy();
    policy.limits.workspace_bytes = 1U << 20U;
    auto sandbox = make_sandbox(policy);
    const Workspace workspace(sandbox);
    require_ok(workspace.write_file("exact", std::string(1U << 20U, 'x')));
    require_ok(workspace.remove("exact"));
    CHECK(
        code_of(workspace.write_file("big", std::string((1U << 20U) + 1, 'x'))) ==
        ErrorCode::kLimitExceeded);
    CHECK(workspace.list("").value().empty());
}

TEST_CASE("a listing has a bounded number of entries") {
    Policy policy = test_policy();
    policy.limits.workspace_inodes = 20'000;
    auto sandbox = make_sandbox(policy);
    const Workspace workspace(sandbox);
    CHECK(run_python(sandbox, "for i in range(10000): open(f'f{i}', 'w').close()").status == 0);
    CHECK(workspace.list("").value().size() == sandbox::kListEntriesMax);
    require_ok(workspace.write_file("one-more", ""));
    CHECK(code_of(workspace.list("")) == ErrorCode::kLimitExceeded);
}

TEST_CASE("names that look like uploads are not listed, but counted") {
    Policy policy = test_policy();
    policy.limits.workspace_inodes = 20'000;
    auto sandbox = make_sandbox(policy);
    const Workspace workspace(sandbox);
    CHECK(
        run_python(sandbox, "for i in range(10000): open(f'.cellkeep-upload-{i}', 'w').close()")
            .status == 0);
    CHECK(workspace.list("").value().empty());
    CHECK(run_python(sandbox, "open('.cellkeep-upload-more', 'w').close()").status == 0);
    CHECK(code_of(workspace.list("")) == ErrorCode::kLimitExceeded);
}

TEST_CASE("a file that the guest made unreadable stays so for the server") {
    auto sandbox = make_sandbox();
    const Workspace workspace(sandbox);
    CHECK(
        run_inside(sandbox, {"/usr/bin/sh", "-c", "echo x > hidden; chmod 000 hidden"}).status ==
        0);
    CHECK(code_of(workspace.open_for_reading("hidden")) == ErrorCode::kPermissionDenied);
    require_ok(workspace.remove("hidden"));
    CHECK(::geteuid() == ::getuid());
}

}  // namespace cellkeep::test
