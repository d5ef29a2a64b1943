// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/envd/watch_routes.hpp"
#include "kernel-manager/e2b/limits.hpp"
#include "tests/support/temporary_workspace.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace cellkeep::e2b {
namespace {

using cellkeep::test::TemporaryWorkspace;
using session::FileEvent;
using session::TreeWatch;
using session::WatchRation;

/// Creates a watcher of a directory, and gives its id.
std::string create_watcher(
    Watchers& watchers,
    const std::shared_ptr<WatchRation>& ration,
    const TemporaryWorkspace& files,
    const std::string& path) {
    auto instance = ration->take({"ses_1", "alice"});
    REQUIRE(instance.has_value());
    auto opened = TreeWatch::open(
        std::move(instance).value(), files.workspace(), path, TreeWatch::Depth::kDirectory);
    REQUIRE(opened.has_value());
    const auto created =
        watchers.create("ses_1", {std::make_shared<TreeWatch>(std::move(opened).value()), path});
    REQUIRE(created.has_value());
    return created.value()["watcherId"];
}

TEST_CASE("an event has a name within the watched directory, and a rename is two", "[e2b]") {
    using Type = FileEvent::Kind;
    const auto events = [](Type kind, const std::string& inside) {
        return nlohmann::json(filesystem_events({kind, "d/new", "d/old", false}, inside)).dump();
    };
    CHECK(
        events(Type::kCreated, "d") ==
        R"([{"name":"new","type":"EVENT_TYPE_CREATE"},{"name":"new","type":"EVENT_TYPE_WRITE"}])");
    CHECK(filesystem_events({Type::kCreated, "d/new", "", true}, "d").size() == 1);
    CHECK(events(Type::kWritten, "") == R"([{"name":"d/new","type":"EVENT_TYPE_WRITE"}])");
    CHECK(events(Type::kRemoved, "d") == R"([{"name":"new","type":"EVENT_TYPE_REMOVE"}])");
    CHECK(events(Type::kAttributes, "d") == R"([{"name":"new","type":"EVENT_TYPE_CHMOD"}])");
    CHECK(
        events(Type::kRenamed, "d") ==
        R"([{"name":"old","type":"EVENT_TYPE_RENAME"},{"name":"new","type":"EVENT_TYPE_CREATE"}])");
}

TEST_CASE("a watcher gives what has happened since the last call, until it is removed", "[e2b]") {
    const TemporaryWorkspace files;
    const auto ration = WatchRation::create([](UniqueFd) {});
    Watchers watchers;
    const std::string id = create_watcher(watchers, ration, files, "");
    CHECK(watchers.take("ses_1", id).value()["events"].empty());
    files.write("a", "");
    CHECK(watchers.take("ses_1", id).value()["events"].size() == 2);
    CHECK(watchers.take("ses_1", id).value()["events"].empty());
    // Another session does not have it, and no other id names it.
    CHECK(watchers.take("ses_2", id).error().code() == ErrorCode::kNotFound);
    CHECK(watchers.take("ses_1", id + "0").error().code() == ErrorCode::kNotFound);
    CHECK(watchers.remove("ses_2", id).error().code() == ErrorCode::kNotFound);
    CHECK(watchers.remove("ses_1", id).has_value());
    CHECK(watchers.remove("ses_1", id).error().code() == ErrorCode::kNotFound);
    CHECK(ration->taken() == 0);
    (void)create_watcher(watchers, ration, files, "");
    watchers.forget("ses_1");
    CHECK(ration->taken() == 0);
}

TEST_CASE("one answer of a watcher is bounded, and the next one goes on", "[e2b]") {
    const TemporaryWorkspace files;
    const auto ration = WatchRation::create([](UniqueFd) {});
    Watchers watchers;
    const std::string id = create_watcher(watchers, ration, files, "");
    const std::size_t made = kWatcherEventsMax * 3;
    for (std::size_t i = 0; i < made; ++i) {
        files.write("f" + std::to_string(i), "");
    }
    // A new file has two.
    const std::size_t most = kWatcherEventsMax + 2 * session::kTreeWatchReadBytes / 16;
    std::size_t got = 0;
    for (std::size_t news = 1; news > 0; got += news) {
        news = watchers.take("ses_1", id).value()["events"].size();
        CHECK(news <= most);
    }
    CHECK(got == 2 * made);
}

}  // namespace
}  // namespace cellkeep::e2b
