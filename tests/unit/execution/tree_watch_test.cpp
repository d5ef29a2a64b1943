// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/watch/tree_watch.hpp"

#include "tests/support/temporary_workspace.hpp"

#include <sys/inotify.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::session {
namespace {

using cellkeep::test::TemporaryWorkspace;
using Kind = FileEvent::Kind;
using Depth = TreeWatch::Depth;
using Events = std::vector<FileEvent>;

std::shared_ptr<WatchRation> make_ration() {
    return WatchRation::create([](UniqueFd) {});
}

struct Seen {
    Events events;
    bool missed = false;
    bool gone = false;
};

/// Everything that there is to say now.
Seen drain(TreeWatch& watch) {
    Seen seen;
    bool more = true;
    while (more) {
        TreeWatch::News news = watch.next();
        seen.events.insert(seen.events.end(), news.events.begin(), news.events.end());
        seen.missed = seen.missed || news.missed;
        seen.gone = seen.gone || news.gone;
        more = news.more;
    }
    return seen;
}

TreeWatch open_watch(
    const TemporaryWorkspace& files, const std::string& path, Depth depth = Depth::kRecursive) {
    auto instance = make_ration()->take({"ses_1", "alice"});
    REQUIRE(instance.has_value());
    auto watch = TreeWatch::open(std::move(instance).value(), files.workspace(), path, depth);
    REQUIRE(watch.has_value());
    return std::move(watch).value();
}

TEST_CASE("a reader gets what happens to files, and nothing of what was there", "[watch]") {
    const TemporaryWorkspace files;
    files.write("old", "1");
    files.write("d/old", "1");
    TreeWatch watch = open_watch(files, "");
    CHECK(drain(watch).events.empty());
    CHECK(watch.ready());
    CHECK(watch.complete());
    CHECK(watch.directories() == 2);
    files.write("d/new", "1");
    std::filesystem::rename(files.path("d/new"), files.path("moved"));
    ::chmod(files.path("moved").c_str(), 0600);
    std::filesystem::remove(files.path("old"));
    CHECK(
        drain(watch).events == Events{
                                   {Kind::kCreated, "d/new", "", false},
                                   {Kind::kWritten, "d/new", "", false},
                                   {Kind::kRenamed, "moved", "d/new", false},
                                   {Kind::kAttributes, "moved", "", false},
                                   {Kind::kRemoved, "old", "", false}});
    CHECK(drain(watch).events.empty());
}

TEST_CASE("many writes of one file are one event", "[watch]") {
    const TemporaryWorkspace files;
    files.write("log", "");
    TreeWatch watch = open_watch(files, "", Depth::kDirectory);
    std::ofstream log(files.path("log"));
    for (int i = 0; i < 10; ++i) {
        log << i << std::flush;
    }
    CHECK(drain(watch).events == Events{{Kind::kWritten, "log", "", false}});
}

TEST_CASE("a directory that appears is watched, and what is in it already is an event", "[watch]") {
    const TemporaryWorkspace files;
    TreeWatch watch = open_watch(files, "");
    (void)drain(watch);
    files.write("a/b/c", "1");
    const Events events = drain(watch).events;
    CHECK(events.front() == FileEvent{Kind::kCreated, "a", "", true});
    CHECK(
        std::find(events.begin(), events.end(), FileEvent{Kind::kCreated, "a/b/c", "", false}) !=
        events.end());
    files.write("a/b/d", "1");
    CHECK(
        drain(watch).events ==
        Events{{Kind::kCreated, "a/b/d", "", false}, {Kind::kWritten, "a/b/d", "", false}});
    // One that moves is known by its new name from then on.
    std::filesystem::rename(files.path("a"), files.path("z"));
    (void)drain(watch);
    files.write("z/b/e", "");
    CHECK(drain(watch).events == Events{{Kind::kCreated, "z/b/e", "", false}});
}

TEST_CASE("without recursion only the directory itself is watched", "[watch]") {
    const TemporaryWorkspace files;
    files.make_directory("d/e");
    TreeWatch watch = open_watch(files, "d", Depth::kDirectory);
    CHECK(watch.ready());
    files.write("d/e/unseen", "1");
    files.write("outside", "1");
    files.write("d/seen", "");
    CHECK(drain(watch).events == Events{{Kind::kCreated, "d/seen", "", false}});
    CHECK(watch.directories() == 1);
}

TEST_CASE("what goes out of the watched directory is removed, what comes in created", "[watch]") {
    const TemporaryWorkspace files;
    files.write("d/one", "1");
    files.write("two", "2");
    TreeWatch watch = open_watch(files, "d");
    (void)drain(watch);
    std::filesystem::rename(files.path("d/one"), files.path("one"));
    std::filesystem::rename(files.path("two"), files.path("d/two"));
    CHECK(
        drain(watch).events ==
        Events{{Kind::kRemoved, "d/one", "", false}, {Kind::kCreated, "d/two", "", false}});
}

TEST_CASE("a watch ends with its directory", "[watch]") {
    const TemporaryWorkspace files;
    files.make_directory("d");
    files.make_directory("e");
    TreeWatch removed = open_watch(files, "d");
    TreeWatch moved = open_watch(files, "e");
    CHECK_FALSE(drain(removed).gone);
    CHECK_FALSE(drain(moved).gone);
    std::filesystem::remove(files.path("d"));
    std::filesystem::rename(files.path("e"), files.path("f"));
    CHECK(drain(removed).gone);
    CHECK(drain(moved).gone);
}

TEST_CASE("no link leads a watch out of the workspace", "[watch]") {
    const TemporaryWorkspace files;
    const TemporaryWorkspace outside;
    outside.make_directory("secret");
    std::filesystem::create_directory_symlink(outside.path("secret"), files.path("link"));
    files.make_directory("real");
    for (const char* path : {"link", "link/x"}) {
        auto instance = make_ration()->take({"ses_1", "alice"});
        REQUIRE(instance.has_value());
        const auto refused = TreeWatch::open(
            std::move(instance).value(), files.workspace(), path, Depth::kRecursive);
        CHECK(refused.has_error());
    }
    TreeWatch watch = open_watch(files, "");
    (void)drain(watch);
    CHECK(watch.directories() == 2);  // the workspace and "real"
    std::filesystem::create_directory_symlink(outside.path("secret"), files.path("later"));
    outside.write("secret/file", "1");
    CHECK(drain(watch).events == Events{{Kind::kCreated, "later", "", false}});
    files.write("real/file", "");
    CHECK(drain(watch).events == Events{{Kind::kCreated, "real/file", "", false}});
}

TEST_CASE("what is no directory is not watched", "[watch]") {
    const TemporaryWorkspace files;
    files.write("file", "1");
    for (const auto& [path, code] : std::vector<std::pair<std::string, ErrorCode>>{
             {"file", ErrorCode::kNotFound}, {"missing", ErrorCode::kNotFound}}) {
        auto instance = make_ration()->take({"ses_1", "alice"});
        REQUIRE(instance.has_value());
        const auto refused = TreeWatch::open(
            std::move(instance).value(), files.workspace(), path, Depth::kDirectory);
        REQUIRE(refused.has_error());
        CHECK(refused.error().code() == code);
    }
}

TEST_CASE("what belongs to the server is no event", "[watch]") {
    const TemporaryWorkspace files;
    files.make_directory(".cellkeep");
    TreeWatch watch = open_watch(files, "");
    (void)drain(watch);
    files.write(".cellkeep/x", "1");
    REQUIRE(files.workspace().write_file("given", "1").has_value());
    CHECK(drain(watch).events == Events{{Kind::kCreated, "given", "", false}});
}

TEST_CASE("a watch has a bounded number of directories and says when it lacks some", "[watch]") {
    const auto extra = GENERATE(0U, 1U);
    const TemporaryWorkspace files;
    // The workspace itself is one of them.
    for (std::size_t i = 0; i + 1 < kTreeWatchDirectoriesMax + extra; ++i) {
        files.make_directory("d" + std::to_string(i));
    }
    TreeWatch watch = open_watch(files, "");
    (void)drain(watch);
    CHECK(watch.directories() == kTreeWatchDirectoriesMax);
    CHECK(watch.complete() == (extra == 0));
}

TEST_CASE("one call does a bounded amount of work", "[watch]") {
    const TemporaryWorkspace files;
    TreeWatch watch = open_watch(files, "");
    (void)drain(watch);
    const std::size_t most = kTreeWatchReadBytes / sizeof(inotify_event);
    for (std::size_t i = 0; i < most; ++i) {
        files.write("f" + std::to_string(i), "");
    }
    const TreeWatch::News first = watch.next();
    CHECK(first.events.size() <= most);
    CHECK(first.more);
    // The same of a directory that is found with its files.
    (void)drain(watch);
    const TemporaryWorkspace other;
    for (std::size_t i = 0; i < kTreeWatchSliceEntries + 1; ++i) {
        other.write("d/f" + std::to_string(i), "");
    }
    std::filesystem::rename(other.path("d"), files.path("d"));
    CHECK(watch.next().events == Events{{Kind::kCreated, "d", "", true}});
    CHECK(watch.next().events.size() == kTreeWatchSliceEntries);
    CHECK(drain(watch).events.size() == 1);
}

TEST_CASE("readers of a session and of a server are counted", "[watch]") {
    const auto ration = make_ration();
    std::vector<WatchInstance> held;
    for (std::size_t i = 0; i < kWatchersSessionMax; ++i) {
        held.push_back(std::move(ration->take({"ses_1", "alice"})).value());
    }
    const auto refused = ration->take({"ses_1", "alice"});
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kLimitExceeded);
    for (std::size_t i = held.size(); i < kWatchersServerMax; ++i) {
        const std::string number = std::to_string(2 + i % 8);
        held.push_back(std::move(ration->take({"ses_" + number, "bob" + number})).value());
    }
    CHECK(ration->take({"ses_100", "carol"}).has_error());
    held.clear();
    CHECK(ration->taken() == 0);
    CHECK(ration->take({"ses_1", "alice"}).has_value());
}

TEST_CASE("the readers of one principal leave room for those of others", "[watch]") {
    const auto ration = make_ration();
    std::vector<WatchInstance> held;
    for (std::size_t i = 0; i < kWatchersOwnerMax; ++i) {
        const std::string session = "ses_" + std::to_string(i / kWatchersSessionMax);
        held.push_back(std::move(ration->take({session, "alice"})).value());
    }
    const auto refused = ration->take({"ses_9", "alice"});
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kLimitExceeded);
    CHECK(ration->take({"ses_10", "bob"}).has_value());
    held.pop_back();
    CHECK(ration->take({"ses_9", "alice"}).has_value());
}

TEST_CASE("all readers together watch a bounded number of directories", "[watch]") {
    const auto ration = make_ration();
    const TemporaryWorkspace files;
    files.make_directory("d");
    const auto open = [&]() {
        auto instance = ration->take({"ses_1", "alice"});
        REQUIRE(instance.has_value());
        return TreeWatch::open(
            std::move(instance).value(), files.workspace(), "", Depth::kRecursive);
    };
    {
        auto other = ration->take({"ses_2", "bob"});
        REQUIRE(other.has_value());
        for (std::size_t i = 0; i + 1 < kWatchedDirectoriesServerMax; ++i) {
            REQUIRE(other.value().add_directory());
        }
        auto watch = open();
        REQUIRE(watch.has_value());
        (void)drain(watch.value());
        CHECK(watch.value().directories() == 1);  // the last one that there was
        CHECK_FALSE(watch.value().complete());
        const auto refused = open();
        REQUIRE(refused.has_error());
        CHECK(refused.error().code() == ErrorCode::kLimitExceeded);
    }
    CHECK(ration->directories() == 0);
    auto watch = open();
    REQUIRE(watch.has_value());
    (void)drain(watch.value());
    CHECK(watch.value().complete());
    CHECK(ration->directories() == 2);
    std::filesystem::remove(files.path("d"));
    (void)drain(watch.value());
    CHECK(ration->directories() == 1);
}

TEST_CASE("some instances are kept for readers when the host has no more", "[watch]") {
    std::size_t left = kWatchersReserved;
    const auto make = [&left]() {
        if (left == 0) {
            errno = EMFILE;
            return UniqueFd();
        }
        --left;
        return UniqueFd(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    };
    const auto ration = WatchRation::create([&left](UniqueFd) { ++left; }, make);
    CHECK(ration->reserved() == kWatchersReserved);
    std::vector<WatchInstance> held;
    for (std::size_t i = 0; i < kWatchersReserved; ++i) {
        held.push_back(std::move(ration->take({"ses_1", "alice"})).value());
    }
    const auto refused = ration->take({"ses_1", "alice"});
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kUnavailable);
    held.pop_back();
    CHECK(ration->take({"ses_1", "alice"}).has_value());
}

}  // namespace
}  // namespace cellkeep::session
