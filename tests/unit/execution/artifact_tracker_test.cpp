// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/artifacts/artifact_tracker.hpp"

#include "tests/support/temporary_workspace.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <memory>
#include <utility>

namespace cellkeep::session {
namespace {

using cellkeep::test::TemporaryWorkspace;
using Changes = std::map<std::string, std::string>;
using Watching = ArtifactTracker::Watching;

std::unique_ptr<ArtifactTracker> make_tracker(
    const TemporaryWorkspace& files, Watching watching = Watching::kIfPossible) {
    return std::make_unique<ArtifactTracker>(
        files.workspace(), [](UniqueFd) {}, watching);
}

Changes names(const ArtifactTracker::Changes& changes) {
    Changes shown;
    for (const auto& [path, change] : changes.files) {
        shown[path] = std::string(to_string(change.change));
    }
    return shown;
}

TEST_CASE("created and changed files are distinguished from those that were there", "[artifacts]") {
    const auto watching = GENERATE(Watching::kIfPossible, Watching::kNever);
    const TemporaryWorkspace files;
    files.write("old", "1");
    files.write("d/old", "1");
    const auto tracker = make_tracker(files, watching);
    tracker->begin();
    CHECK(names(tracker->take()).empty());
    tracker->begin();
    files.write("new", "1");
    files.write("d/old", "22");
    files.write("e/f/deep", "3");
    const auto changes = tracker->take();
    CHECK(
        names(changes) ==
        Changes{{"new", "created"}, {"d/old", "modified"}, {"e/f/deep", "created"}});
    CHECK(changes.complete);
    CHECK(changes.files.at("d/old").state.bytes == 2);
    // A new file in a new directory is seen, too.
    tracker->begin();
    files.write("e/f/second", "x");
    CHECK(names(tracker->take()) == Changes{{"e/f/second", "created"}});
}

TEST_CASE("what an execution changes is known in another program", "[artifacts][passing]") {
    const auto watching = GENERATE(Watching::kIfPossible, Watching::kNever);
    const TemporaryWorkspace files;
    files.write("old", "1");
    files.write("older", "1");
    const auto left = make_tracker(files, watching);
    left->begin();
    files.write("before", "1");
    CHECK(left->passed_bytes() > 0);
    ArtifactTracker::Passed passed = left->pass_on();
    CHECK(passed.complete);
    const auto next = make_tracker(files, watching);
    SECTION("with the listing") {
        next->go_on(std::move(passed));
        files.write("old", "22");
        files.write("d/after", "1");
        const auto changes = next->take();
        CHECK(
            names(changes) ==
            Changes{{"before", "created"}, {"d/after", "created"}, {"old", "modified"}});
        CHECK(changes.complete);
    }
    SECTION("without one it may be more") {
        next->go_on({{}, false, passed.begun_at});
        CHECK_FALSE(next->take().complete);
    }
    next->begin();
    files.write("next", "1");
    CHECK(names(next->take()) == Changes{{"next", "created"}});
}

TEST_CASE("a change between two executions belongs to neither", "[artifacts]") {
    const auto watching = GENERATE(Watching::kIfPossible, Watching::kNever);
    const TemporaryWorkspace files;
    const auto tracker = make_tracker(files, watching);
    tracker->begin();
    (void)tracker->take();
    files.write("between", "x");
    tracker->begin();
    CHECK(names(tracker->take()).empty());
}

TEST_CASE("the descriptor of the watch tells whether something has changed", "[artifacts]") {
    const TemporaryWorkspace files;
    const auto tracker = make_tracker(files);
    tracker->begin();
    pollfd watch{tracker->watch_fd(), POLLIN, 0};
    REQUIRE(watch.fd >= 0);
    CHECK(::poll(&watch, 1, 0) == 0);
    SECTION("a change") {
        files.write("new", "1");
        CHECK(::poll(&watch, 1, 0) == 1);
        CHECK(names(tracker->take()) == Changes{{"new", "created"}});
        CHECK(::poll(&watch, 1, 0) == 0);
    }
    SECTION("more changes than are noted") {
        for (std::size_t i = 0; i <= kFollowedNamesMax; ++i) {
            files.write(std::to_string(i), "");
        }
        CHECK(::poll(&watch, 1, 0) == 1);
        CHECK(tracker->take().files.size() == kFollowedNamesMax + 1);
    }
    SECTION("nothing: then there is no look, and the next execution has one again") {
        tracker->note_unchanged();
        const auto changes = tracker->take();
        CHECK(names(changes).empty());
        CHECK(changes.complete);
        tracker->begin();
        files.write("new", "1");
        CHECK(names(tracker->take()) == Changes{{"new", "created"}});
    }
    SECTION("nothing, but the answer is not asked for: the next execution has a look") {
        tracker->note_unchanged();
        tracker->begin();
        files.write("new", "1");
        CHECK(names(tracker->take()) == Changes{{"new", "created"}});
    }
}

TEST_CASE("without a watch, nothing but a look tells what has changed", "[artifacts]") {
    const TemporaryWorkspace files;
    const auto tracker = make_tracker(files, Watching::kNever);
    CHECK(tracker->watch_fd() == -1);
    tracker->begin();
    CHECK(tracker->watch_fd() == -1);
    tracker->note_unchanged();
    files.write("new", "1");
    CHECK(names(tracker->take()) == Changes{{"new", "created"}});
}

TEST_CASE("a file that is replaced, moved or removed", "[artifacts]") {
    const auto watching = GENERATE(Watching::kIfPossible, Watching::kNever);
    const TemporaryWorkspace files;
    files.write("replaced", "1");
    files.write("moved", "1");
    files.write("removed", "1");
    files.write("tree/leaf", "1");
    const auto tracker = make_tracker(files, watching);
    tracker->begin();
    files.write("temporary", "2");
    std::filesystem::rename(files.path("temporary"), files.path("replaced"));
    std::filesystem::rename(files.path("moved"), files.path("there"));
    std::filesystem::remove(files.path("removed"));
    std::filesystem::rename(files.path("tree"), files.path("wood"));
    files.write("gone", "1");
    std::filesystem::remove(files.path("gone"));
    CHECK(
        names(tracker->take()) ==
        Changes{{"replaced", "modified"}, {"there", "created"}, {"wood/leaf", "created"}});
    // A directory is known by its new name from then on.
    tracker->begin();
    files.write("wood/leaf", "22");
    files.write("removed", "again");
    CHECK(names(tracker->take()) == Changes{{"wood/leaf", "modified"}, {"removed", "created"}});
}

TEST_CASE("only plain files count, and not the server's", "[artifacts]") {
    const auto watching = GENERATE(Watching::kIfPossible, Watching::kNever);
    const TemporaryWorkspace files;
    const auto tracker = make_tracker(files, watching);
    tracker->begin();
    std::filesystem::create_symlink("/etc/passwd", files.path("link"));
    REQUIRE(::mkfifo(files.path("fifo").c_str(), 0600) == 0);
    files.write(".cellkeep/exe_1/stdout.txt", "x");
    files.write("a\nb", "x");
    files.write("\xff", "x");
    CHECK(names(tracker->take()) == Changes{{"a\nb", "created"}, {"\xff", "created"}});
}

TEST_CASE("packages that are installed are no execution's files", "[artifacts]") {
    const auto watching = GENERATE(Watching::kIfPossible, Watching::kNever);
    const TemporaryWorkspace files;
    const std::string packages(kPackagesDirectory);
    const auto tracker = make_tracker(files, watching);
    tracker->begin();
    files.write(packages + "/lib/rich/__init__.py", "x");
    files.write(packages + "s/mine", "x");
    files.write("d/" + packages + "/mine", "x");
    CHECK(
        names(tracker->take()) ==
        Changes{{packages + "s/mine", "created"}, {"d/" + packages + "/mine", "created"}});
    tracker->begin();
    files.write(packages + "/lib/rich/__init__.py", "longer");
    files.write(packages + "/lib/rich/second.py", "x");
    const auto changes = tracker->take();
    CHECK(names(changes).empty());
    CHECK(changes.complete);
}

TEST_CASE("a file written in the same tick with the same size is seen", "[artifacts]") {
    const TemporaryWorkspace files;
    const auto tracker = make_tracker(files);
    tracker->begin();
    REQUIRE(tracker->watching());
    for (int i = 0; i < 50; ++i) {
        files.write("same", std::to_string(i % 10));
        tracker->begin();
        files.write("same", std::to_string(i % 10));
        CHECK(names(tracker->take()) == Changes{{"same", "modified"}});
    }
}

TEST_CASE("a file that is only closed late is no change, a written one is", "[artifacts]") {
    const TemporaryWorkspace files;
    const auto tracker = make_tracker(files);
    tracker->begin();
    REQUIRE(tracker->watching());
    for (int i = 0; i < 50; ++i) {
        files.write("input", "1");
        // As a fork before its exec holds it, or a reader of /proc/PID/fd.
        UniqueFd held(::open(files.path("input").c_str(), O_WRONLY | O_CLOEXEC));
        REQUIRE(held);
        tracker->begin();
        held.reset();
        CHECK(names(tracker->take()).empty());
    }
    UniqueFd writer(::open(files.path("input").c_str(), O_WRONLY | O_CLOEXEC));
    tracker->begin();
    REQUIRE(::write(writer.get(), "2", 1) == 1);
    CHECK(names(tracker->take()) == Changes{{"input", "modified"}});
}

TEST_CASE("a flood of changes is still reported completely", "[artifacts]") {
    // More names than kFollowedNamesMax, so everything is looked at.
    const TemporaryWorkspace files;
    const auto tracker = make_tracker(files);
    tracker->begin();
    const std::size_t count = kFollowedNamesMax + 1;
    for (std::size_t i = 0; i < count; ++i) {
        files.write(std::to_string(i), "");
    }
    const auto changes = tracker->take();
    CHECK(changes.files.size() == count);
    CHECK(changes.complete);
}

TEST_CASE("a tree that is costly to look at is not looked at again at once", "[artifacts]") {
    // After a look that took longer than kLookFree there is none for kLookRest times as long, and
    // the answer says so.
    const TemporaryWorkspace files;
    for (std::size_t i = 0; i < 15'000; ++i) {
        files.write(std::to_string(i), "");
    }
    const auto tracker = make_tracker(files, Watching::kNever);
    tracker->begin();
    const auto changes = tracker->take();
    CHECK_FALSE(changes.complete);
    CHECK(kLookRest > 1);
    CHECK(kLookFree.count() > 0);
}

TEST_CASE("beyond kListedFilesMax the answer is not complete", "[artifacts]") {
    CHECK(kListedFilesMax == 20'000);
    const TemporaryWorkspace files;
    for (std::size_t i = 0; i < kListedFilesMax; ++i) {
        files.write(std::to_string(i), "");
    }
    const auto tracker = make_tracker(files);
    tracker->begin();
    CHECK(tracker->take().complete);
    tracker->begin();
    files.write("one more", "");
    const auto changes = tracker->take();
    CHECK(names(changes) == Changes{{"one more", "created"}});
    CHECK_FALSE(changes.complete);
}

TEST_CASE("paths of more than kListedPathBytesMax make the answer incomplete", "[artifacts]") {
    const TemporaryWorkspace files;
    const std::string deep =
        std::string(250, 'a') + "/" + std::string(250, 'b') + "/" + std::string(250, 'c');
    const std::size_t each = deep.size() + 1 + 250;
    for (std::size_t i = 0; i < kListedPathBytesMax / each + 1; ++i) {
        std::string name = std::to_string(i);
        files.write(deep + "/" + name + std::string(250 - name.size(), 'x'), "");
    }
    const auto tracker = make_tracker(files);
    tracker->begin();
    CHECK_FALSE(tracker->take().complete);
}

TEST_CASE("more directories than can be watched are looked at instead", "[artifacts]") {
    const TemporaryWorkspace files;
    for (std::size_t i = 1; i < kWatchedDirectoriesMax; ++i) {
        files.make_directory(std::to_string(i));
    }
    const auto tracker = make_tracker(files);
    tracker->begin();
    CHECK(tracker->watching());  // the workspace itself is one
    files.make_directory("one more");
    files.write("one more/x", "1");
    CHECK(names(tracker->take()) == Changes{{"one more/x", "created"}});
    CHECK_FALSE(tracker->watching());
}

TEST_CASE("a watch reports a bounded number of events at once", "[artifacts]") {
    // The host's own bound is lower; kWatchedEventsMax holds where it is not.
    CHECK(kWatchedEventsMax == 65'536);
    const TemporaryWorkspace files;
    auto watch = WorkspaceWatch::create();
    REQUIRE(watch.has_value());
    const UniqueFd directory(::open(files.path(".").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    REQUIRE(watch.value().add(directory.get(), "").has_value());
    for (int i = 0; i < 40'000; ++i) {
        files.write(std::to_string(i % 2), "");
    }
    const auto notes = watch.value().drain();
    CHECK(notes.lost);
    CHECK(notes.changed.size() <= 2);
    CHECK_FALSE(watch.value().drain().lost);
}

}  // namespace
}  // namespace cellkeep::session
