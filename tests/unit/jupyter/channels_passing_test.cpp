// SPDX-License-Identifier: Apache-2.0
//
// The places of clients that are away, on their way to another program.
#include "kernel-manager/jupyter/channels/channels_passing.hpp"

#include "tests/unit/jupyter/hub_fixture.hpp"

#include <catch2/catch.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::jupyter::test {
namespace {

using nlohmann::json;

/// As it passes between two programs.
json through_bytes(const json& value) {
    return json::from_cbor(json::to_cbor(value));
}

/// What another program makes of a hub, around the same session.
std::shared_ptr<ChannelsHub> pass_to_another(HubFixture& f) {
    const json passed = through_bytes(f.hub->pass_on());
    auto next = std::make_shared<ChannelsHub>(f.io, f.session, nullptr, SubscriptionConfig{});
    if (!passed.is_null()) {
        next->go_on(passed);
    }
    return next;
}

void leave(HubFixture& f, const std::shared_ptr<FakeSocket>& socket, std::uint64_t proved) {
    socket->prove(proved);
    socket->cut();
    f.settle();
}

TEST_CASE("a client finds its place in another program", "[channels][passing]") {
    HubFixture f;
    const std::string key = std::string("p\xff") + '\0' + "id";
    const auto socket = f.connect(key);
    socket->say(make_request());
    (void)f.session->say("read");
    (void)f.session->say("not read");
    f.settle();
    REQUIRE(socket->texts() == Texts{"idle", "read", "not read"});
    leave(f, socket, 2);
    FakeSession::reply(f.session->submitted[0], {{"tag", "answer"}});
    (void)f.session->say("behind the answer");
    CHECK(f.hub->passed_bytes() >= json::to_cbor(f.hub->pass_on()).size());
    CHECK(f.hub->passed_bytes() < 10'000);
    f.hub = pass_to_another(f);
    (void)f.session->say("of the other program");
    const Texts rest{"not read", "answer", "behind the answer", "of the other program", "idle"};
    CHECK(f.connect(key)->texts() == rest);
    CHECK(f.connect("another")->texts().back() == "idle");
}

TEST_CASE("an answer on control comes first there, too", "[channels][passing]") {
    HubFixture f;
    const auto socket = f.connect("a");
    socket->say(make_request());
    socket->say(make_request("usage_request", protocol::Channel::kControl));
    f.settle();
    leave(f, socket, 1);
    (void)f.session->say("output");
    FakeSession::reply(f.session->submitted[0], {{"tag", "shell"}});
    FakeSession::reply(f.session->submitted[1], {{"tag", "control"}});
    f.hub = pass_to_another(f);
    CHECK(f.connect("a")->texts() == Texts{"control", "output", "shell", "idle"});
}

TEST_CASE("a client learns there what is missing", "[channels][passing]") {
    HubFixture f;
    const auto socket = f.connect("a");
    leave(f, socket, 1);
    f.session->say_many(limits::kJournalMessagesMax + 3);
    f.hub = pass_to_another(f);
    const auto again = f.connect("a");
    CHECK_THAT(again->texts().front(), Catch::Matchers::Contains("3 output messages are missing"));
    CHECK(again->got.size() == limits::kJournalMessagesMax + 2);
}

TEST_CASE("places pass again and again, and in their order", "[channels][passing]") {
    // limits::kChannelsPlacesMax
    HubFixture f;
    for (std::size_t i = 0; i < limits::kChannelsPlacesMax; ++i) {
        const auto socket = f.connect("away " + std::to_string(i));
        leave(f, socket, 1);
    }
    (void)f.session->say("output");
    (void)f.session->say_status("over");
    (void)f.session->say_status("idle");
    for (int turn = 0; turn < 3; ++turn) {
        f.hub = pass_to_another(f);
        CHECK(f.hub->places() == limits::kChannelsPlacesMax);
    }
    // One more leaves: the first one is forgotten.
    leave(f, f.connect("one more"), 1);
    CHECK(f.hub->places() == limits::kChannelsPlacesMax);
    CHECK(f.connect("away 1")->texts() == Texts{"output", "over", "idle", "idle"});
    CHECK(f.connect("away 0")->texts() == Texts{"idle"});
}

TEST_CASE("who is there, or has no name, has no place to pass", "[channels][passing]") {
    HubFixture f;
    CHECK(f.hub->pass_on().is_null());
    const auto there = f.connect("a");
    const auto unnamed = f.connect("");
    leave(f, unnamed, 1);
    CHECK(f.hub->pass_on().is_null());
    leave(f, there, 1);
    CHECK(f.hub->pass_on().size() == 1);
}

/// An answer whose frame has so many bytes.
protocol::Message make_answer(std::size_t bytes) {
    const std::size_t empty = FakeSession::make_bytes(1, 0).frame().size();
    auto message = FakeSession::make_bytes(1, bytes - empty);
    REQUIRE(message.frame().size() == bytes);
    return message;
}

PassedPlace make_place(const std::string& key, const std::vector<std::size_t>& answers) {
    PassedPlace place;
    place.key = key;
    for (std::size_t i = 0; i < answers.size(); ++i) {
        place.answers.push_back({make_answer(answers[i]), i});
    }
    return place;
}

TEST_CASE("the newest answers of a client pass, up to a bound", "[channels][passing][limits]") {
    // kPassedPlaceBytesMax
    constexpr std::size_t kHalf = kPassedPlaceBytesMax / 2;
    std::size_t dropped = 0;
    json written = write_places({make_place("a", {kHalf, kHalf})}, dropped);
    CHECK(dropped == 0);
    CHECK(read_places(written, dropped).front().answers.size() == 2);
    written = write_places({make_place("a", {kHalf + 1, kHalf})}, dropped);
    CHECK(dropped == 1);
    const auto places = read_places(through_bytes(written), dropped);
    CHECK(dropped == 1);
    REQUIRE(places.front().answers.size() == 1);
    CHECK(places.front().answers[0].after == 1);
    CHECK(places.front().answers[0].message.frame().size() == kHalf);
}

TEST_CASE("so do those of a session's clients together", "[channels][passing][limits]") {
    // kPassedPlacesBytesMax
    constexpr std::size_t kClients = kPassedPlacesBytesMax / kPassedPlaceBytesMax;
    std::vector<PassedPlace> places;
    for (std::size_t i = 0; i < kClients; ++i) {
        places.push_back(make_place(std::to_string(i), {kPassedPlaceBytesMax}));
    }
    std::size_t dropped = 0;
    CHECK(write_places(places, dropped).size() == kClients);
    CHECK(dropped == 0);
    places.push_back(make_place("the last that left", {kPassedPlaceBytesMax}));
    const auto read = read_places(write_places(places, dropped), dropped);
    CHECK(dropped == 1);
    REQUIRE(read.size() == kClients + 1);
    CHECK(read.front().key == "0");
    CHECK(read.front().answers.empty());
    CHECK(read.back().answers.size() == 1);
}

TEST_CASE("an answer that is no message is left out", "[channels][passing]") {
    std::size_t dropped = 0;
    json written = write_places({make_place("a", {10'000, 10'000})}, dropped);
    written[0]["answers"][0]["frame"] = "no message";
    const auto places = read_places(written, dropped);
    CHECK(dropped == 1);
    CHECK(places.front().answers.size() == 1);
}

TEST_CASE("places of another form are refused", "[channels][passing]") {
    std::size_t dropped = 0;
    const json written = write_places({make_place("a", {10'000})}, dropped);
    for (const char* name : {"key", "seen", "answers", "lost", "lost_parent"}) {
        CAPTURE(name);
        json broken = written;
        broken[0].erase(name);
        CHECK_THROWS_AS(read_places(broken, dropped), json::exception);
        broken[0][name] = json::array({json::object()});
        CHECK_THROWS_AS(read_places(broken, dropped), json::exception);
    }
    CHECK_THROWS_AS(read_places(json::array({7}), dropped), json::exception);
    CHECK(read_places(json::array(), dropped).empty());
}

}  // namespace
}  // namespace cellkeep::jupyter::test
