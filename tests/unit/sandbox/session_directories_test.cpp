// SPDX-License-Identifier: Apache-2.0
#include "sandbox/cgroup/session_directories.hpp"

#include "sandbox/cgroup/leftovers.hpp"
#include "sandbox/cgroup/worker_leaves.hpp"
#include "tests/unit/sandbox/fake_cgroup.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

namespace cellkeep::sandbox {
namespace {

using namespace std::chrono_literals;

std::string make_in(SessionDirectories& directories, const FakeCgroup& base) {
    auto made = directories.make(base.path(), "server", "session");
    REQUIRE(made.has_value());
    return std::move(made).value();
}

void put_file(const std::string& path, const std::string& text) {
    std::ofstream(path) << text;
}

std::string text_of(const std::string& path) {
    const auto text = read_file(path, 4096);
    return text.has_value() ? text.value() : "?";
}

TEST_CASE(
    "a session's directories go with it, and the server's with the last", "[sandbox][cgroup]") {
    const FakeCgroup one;
    const FakeCgroup two;
    {
        SessionDirectories directories;
        CHECK(make_in(directories, one) == one.path() + "/server/session");
        CHECK(make_in(directories, two) == two.path() + "/server/session");
        CHECK(make_in(directories, one) == one.path() + "/server/session");  // the same one again
        REQUIRE(directories.make_leaf(one.path() + "/server/session/leaf").has_value());
        CHECK(
            directories.paths() == std::vector<std::string>{
                                       one.path() + "/server/session",
                                       two.path() + "/server/session",
                                       one.path() + "/server/session/leaf"});
        SessionDirectories other;
        REQUIRE(other.make(one.path(), "server", "other").has_value());
        REQUIRE(directories.remove(0ms).has_value());
        CHECK(directories.paths().empty());
        CHECK_FALSE(std::filesystem::exists(one.path() + "/server/session"));
        CHECK(std::filesystem::exists(one.path() + "/server/other"));
        CHECK_FALSE(std::filesystem::exists(two.path() + "/server"));
    }
    CHECK_FALSE(std::filesystem::exists(one.path() + "/server"));
}

TEST_CASE("a directory that another has made is not a session's", "[sandbox][cgroup]") {
    const FakeCgroup base;
    SessionDirectories first;
    (void)make_in(first, base);
    {
        SessionDirectories second;
        const auto refused = second.make(base.path(), "server", "session");
        REQUIRE(refused.has_error());
        CHECK(refused.error().errno_value() == EEXIST);
        CHECK(second.make("/no/such/base", "server", "session").has_error());
        CHECK(second.make_leaf(base.path() + "/server/session/a/b").has_error());
    }
    CHECK(std::filesystem::exists(base.path() + "/server/session"));
}

TEST_CASE("a directory that is busy is removed later", "[sandbox][cgroup]") {
    const FakeCgroup base;
    const std::string path = base.path() + "/server/session";
    {
        SessionDirectories directories;
        (void)make_in(directories, base);
        std::filesystem::create_directory(path + "/process");
        CHECK(directories.remove(0ms).has_error());
        CHECK(directories.paths().size() == 1);
        SECTION("by its owner") {
            std::filesystem::remove(path + "/process");
            CHECK(directories.remove(0ms).has_value());
        }
        SECTION("as a leftover, when the owner has gone") {}
    }
    std::filesystem::remove(path + "/process");
    CHECK(clear_leftovers() == 0);
    CHECK_FALSE(std::filesystem::exists(base.path() + "/server"));
}

TEST_CASE("each group of workers has a leaf of its own", "[sandbox][cgroup]") {
    const FakeCgroup base;
    SessionDirectories directories;
    const std::string session = make_in(directories, base);
    WorkerLeaves leaves = WorkerLeaves::make(session, directories);
    REQUIRE(leaves.exist());
    CHECK(leaves.procs_file() == session + "/workers/cgroup.procs");
    // Group 0 is served by that file.
    const auto main = leaves.open_procs(0, directories);
    REQUIRE(main.has_value());
    CHECK_FALSE(main.value());
    CHECK(leaves.open_procs(2, directories).has_error());  // a plain directory has no such file
    put_file(session + "/workers-2/cgroup.procs", "");
    const auto second = leaves.open_procs(2, directories);
    REQUIRE(second.has_value());
    CHECK(second.value());
    CHECK(
        leaves.procs_files() ==
        std::vector<std::string>{
            session + "/workers/cgroup.procs", session + "/workers-2/cgroup.procs"});
    CHECK(directories.paths().size() == 3);
    CHECK_FALSE(leaves.open_events(2));
    put_file(session + "/workers-2/cgroup.events", "populated 0\n");
    CHECK(leaves.open_events(2));
    CHECK_FALSE(leaves.open_events(3));
    std::filesystem::remove(session + "/workers-2/cgroup.procs");
    std::filesystem::remove(session + "/workers-2/cgroup.events");
}

TEST_CASE("groups of workers are killed and counted alone", "[sandbox][cgroup]") {
    const FakeCgroup base;
    SessionDirectories directories;
    const std::string session = make_in(directories, base);
    WorkerLeaves leaves = WorkerLeaves::make(session, directories);
    (void)leaves.open_procs(1, directories);  // it makes the leaf, whose files are the test's
    const std::string main = session + "/workers";
    const std::string other = session + "/workers-1";
    put_file(main + "/cgroup.kill", "");
    put_file(other + "/cgroup.kill", "");
    CHECK(leaves.kill(1).has_value());
    CHECK(text_of(main + "/cgroup.kill").empty());
    CHECK(text_of(other + "/cgroup.kill") == "1");
    CHECK(leaves.kill(5).has_value());  // there is nothing to kill
    SECTION("all of them") {
        CHECK(leaves.kill_all().has_value());
        CHECK(text_of(main + "/cgroup.kill") == "1");
    }
    SECTION("all of them, also after one that fails") {
        std::filesystem::remove(main + "/cgroup.kill");
        put_file(other + "/cgroup.kill", "");
        CHECK(leaves.kill_all().has_error());
        CHECK(text_of(other + "/cgroup.kill") == "1");
    }
    CHECK(leaves.cpu_time(5).error().code() == ErrorCode::kUnavailable);
    CHECK(leaves.cpu_time(1).error().code() == ErrorCode::kSystem);
    put_file(other + "/cpu.stat", "usage_usec 7\n");
    CHECK(leaves.cpu_time(1).value() == 7us);
    leaves.close_counters();
    put_file(other + "/cpu.stat", "usage_usec 8\n");
    CHECK(leaves.cpu_time(1).value() == 8us);
    for (const std::string& leaf : {main, other}) {
        std::filesystem::remove(leaf + "/cgroup.kill");
        std::filesystem::remove(leaf + "/cpu.stat");
    }
}

TEST_CASE("two groups exchange their leaves", "[sandbox][cgroup]") {
    const FakeCgroup base;
    SessionDirectories directories;
    const std::string session = make_in(directories, base);
    WorkerLeaves leaves = WorkerLeaves::make(session, directories);
    CHECK(leaves.exchange(0, 8).error().code() == ErrorCode::kUnavailable);  // it has none yet
    CHECK(leaves.procs_file_of(8).empty());
    (void)leaves.open_procs(8, directories);  // it makes the leaf, whose files are the test's
    const std::string main = session + "/workers";
    const std::string other = session + "/workers-8";
    for (const std::string& leaf : {main, other}) {
        put_file(leaf + "/cgroup.kill", "");
        put_file(leaf + "/cgroup.procs", "");
    }
    REQUIRE(leaves.exchange(0, 8).has_value());
    CHECK(leaves.procs_file_of(0) == other + "/cgroup.procs");
    CHECK(leaves.procs_file_of(8) == main + "/cgroup.procs");
    // What pid 1 has is still the first one's, so group 0 has to be given its own.
    CHECK(leaves.procs_file() == main + "/cgroup.procs");
    CHECK(leaves.open_procs(0, directories).value());
    CHECK(leaves.kill(0).has_value());
    CHECK(text_of(main + "/cgroup.kill").empty());
    CHECK(text_of(other + "/cgroup.kill") == "1");
    SECTION("another program goes on with them") {
        WorkerLeaves taken = WorkerLeaves::take_over(leaves.paths());
        CHECK(taken.procs_file() == main + "/cgroup.procs");
        CHECK(taken.procs_file_of(0) == other + "/cgroup.procs");
        CHECK(taken.open_procs(0, directories).value());
    }
    SECTION("and back") {
        REQUIRE(leaves.exchange(0, 8).has_value());
        CHECK(leaves.procs_file_of(0) == main + "/cgroup.procs");
        CHECK_FALSE(leaves.open_procs(0, directories).value());
    }
    for (const std::string& leaf : {main, other}) {
        std::filesystem::remove(leaf + "/cgroup.kill");
        std::filesystem::remove(leaf + "/cgroup.procs");
    }
}

TEST_CASE("without leaves there is nothing to enter, to kill or to count", "[sandbox][cgroup]") {
    SessionDirectories directories;
    WorkerLeaves none = WorkerLeaves::make("/no/such/session", directories);
    CHECK_FALSE(none.exist());
    CHECK(none.procs_file().empty());
    CHECK(none.procs_files().empty());
    const auto opened = none.open_procs(1, directories);
    REQUIRE(opened.has_value());
    CHECK_FALSE(opened.value());
    CHECK(none.kill_all().has_value());
    CHECK(none.cpu_time(0).error().code() == ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace cellkeep::sandbox
