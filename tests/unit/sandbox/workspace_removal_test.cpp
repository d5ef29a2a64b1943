// SPDX-License-Identifier: Apache-2.0
#include "sandbox/workspace/workspace_removal.hpp"

#include "tests/support/temporary_workspace.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <future>
#include <thread>

namespace cellkeep::sandbox {
namespace {

using cellkeep::test::TemporaryWorkspace;

TEST_CASE("a directory is removed with everything in it", "[removal]") {
    const TemporaryWorkspace files;
    files.write("d/a", "1");
    files.write("d/e/f/b", "2");
    files.write("kept", "3");
    REQUIRE(::mkfifo(files.path("d/fifo").c_str(), 0600) == 0);
    CHECK(remove_all(files.workspace(), "d").has_value());
    CHECK_FALSE(std::filesystem::exists(files.path("d")));
    CHECK(std::filesystem::exists(files.path("kept")));
    CHECK(remove_all(files.workspace(), "kept").has_value());
    CHECK(remove_all(files.workspace(), "kept").error().code() == ErrorCode::kNotFound);
    CHECK(remove_all(files.workspace(), "").error().code() == ErrorCode::kInvalidArgument);
}

TEST_CASE("a removal does not go through links", "[removal]") {
    const TemporaryWorkspace files;
    const TemporaryWorkspace elsewhere;
    elsewhere.write("precious", "x");
    files.make_directory("d");
    std::filesystem::create_directory_symlink(elsewhere.path("."), files.path("d/link"));
    std::filesystem::create_directory_symlink(elsewhere.path("."), files.path("top"));
    CHECK(remove_all(files.workspace(), "d").has_value());
    CHECK(remove_all(files.workspace(), "top").has_value());
    CHECK(std::filesystem::exists(elsewhere.path("precious")));
    CHECK_FALSE(std::filesystem::exists(files.path("top")));
}

TEST_CASE("a removal ends at kRemovedEntriesMax and can go on", "[removal]") {
    const TemporaryWorkspace files;
    files.make_directory("d");
    for (std::size_t i = 0; i < kRemovedEntriesMax + 1; ++i) {
        const UniqueFd made(::open(
            files.path("d/" + std::to_string(i)).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        REQUIRE(made.valid());
    }
    CHECK(remove_all(files.workspace(), "d").error().code() == ErrorCode::kLimitExceeded);
    CHECK(remove_all(files.workspace(), "d").has_value());
    CHECK_FALSE(std::filesystem::exists(files.path("d")));
}

TEST_CASE("a removal goes in slices, and outlives its workspace", "[removal]") {
    const TemporaryWorkspace files;
    constexpr std::size_t kFiles = 25;
    for (std::size_t i = 0; i < kFiles; ++i) {
        files.write("d/" + std::to_string(i % 5) + "/" + std::to_string(i), "x");
    }
    UniqueFd own(::dup(files.fd()));
    auto begun = Removal::begin(
        Workspace(own.get(), files.workspace().file_uid(), files.workspace().file_gid()), "d");
    REQUIRE(begun.has_value());
    own.reset();
    std::size_t slices = 1;
    while (begun.value().remove_some(10).value()) {
        ++slices;
    }
    CHECK(slices == (kFiles + 5) / 10 + 1);  // the directories count
    CHECK_FALSE(std::filesystem::exists(files.path("d")));
    CHECK_FALSE(begun.value().remove_some(1).value());
}

TEST_CASE("what is mounted for the guest alone is not removed", "[removal]") {
    if (::geteuid() != 0) {
        WARN("takes root to mount");
        return;
    }
    const TemporaryWorkspace files;
    files.write("input", "the operator's");
    files.write("d/e/place", "");
    files.write("d/other", "x");
    // As a sandbox: a mount namespace that the server is not in.
    std::promise<int> opened;
    std::promise<void> ended;
    std::thread guest([&] {
        const std::string place = files.path("d/e/place");
        const bool mounted =
            ::unshare(CLONE_NEWNS) == 0 &&
            ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
            ::mount(files.path("input").c_str(), place.c_str(), nullptr, MS_BIND, nullptr) == 0;
        opened.set_value(
            mounted ? ::open(files.path(".").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC) : -1);
        ended.get_future().wait();
    });
    const UniqueFd inside(opened.get_future().get());
    const Workspace workspace(
        inside.get(), files.workspace().file_uid(), files.workspace().file_gid());
    const Status whole = inside ? remove_all(workspace, "d") : Status(ok());
    const Status one = inside ? workspace.remove("d/e/place") : Status(ok());
    const bool kept = std::filesystem::exists(files.path("d/e/place"));
    ended.set_value();
    guest.join();
    REQUIRE(inside.valid());
    REQUIRE(whole.has_error());
    CHECK(whole.error().code() == ErrorCode::kPermissionDenied);
    REQUIRE(one.has_error());
    CHECK(one.error().code() == ErrorCode::kPermissionDenied);
    CHECK(kept);
    // Without the mount it goes.
    CHECK(remove_all(files.workspace(), "d").has_value());
}

TEST_CASE("a tree deeper than kRemovedDepthMax is removed too", "[removal]") {
    const TemporaryWorkspace files;
    const TemporaryWorkspace elsewhere;
    elsewhere.write("precious", "x");
    // Made step by step: no path is long enough for it.
    UniqueFd at(::dup(files.fd()));
    for (std::size_t depth = 0; depth < 3 * kRemovedDepthMax + 7; ++depth) {
        REQUIRE(::mkdirat(at.get(), "d", 0700) == 0);
        UniqueFd below(::openat(at.get(), "d", O_PATH | O_DIRECTORY | O_CLOEXEC));
        REQUIRE(below.valid());
        at = std::move(below);
        const UniqueFd file(::openat(at.get(), "f", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        REQUIRE(file.valid());
        REQUIRE(::symlinkat(elsewhere.path(".").c_str(), at.get(), "link") == 0);
    }
    at.reset();
    CHECK(remove_all(files.workspace(), "d").has_value());
    CHECK(std::filesystem::is_empty(files.path(".")));
    CHECK(std::filesystem::exists(elsewhere.path("precious")));
}

}  // namespace
}  // namespace cellkeep::sandbox
