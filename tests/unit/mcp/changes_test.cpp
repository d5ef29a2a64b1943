// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/changes/change_watch.hpp"
#include "kernel-manager/mcp/limits.hpp"
#include "tests/unit/mcp/mcp_server.hpp"

#include <boost/asio/co_spawn.hpp>
#include <catch2/catch.hpp>

#include <fstream>
#include <string>
#include <vector>

namespace cellkeep::mcp::test {
namespace {

const http::Principal kWatcher{"alice", http::Role::kAgent};

http::Principal watcher(std::size_t number) {
    return {"watcher " + std::to_string(number), http::Role::kAgent};
}

struct Watch {
    boost::asio::io_context io;
    std::map<std::string, std::string> now;  // by URI
    std::size_t looks = 0;
    std::shared_ptr<ChangeWatch> watch = ChangeWatch::create(
        io, [this](const http::Principal& /*principal*/, const std::string& uri) {
            ++looks;
            return now[uri];
        });

    void look_until(const std::function<bool()>& done) {
        io.restart();
        while (!done() && io.run_one() > 0) {
        }
    }
};

TEST_CASE("a change is told once, and again if there was no room", "[mcp][changes]") {
    Watch one;
    std::vector<std::string> told;
    bool room = false;
    int refused = 0;
    auto subscription = one.watch->open(kWatcher, [&](const std::string& uri) {
        if (room) {
            told.push_back(uri);
        } else {
            ++refused;
        }
        return room;
    });
    REQUIRE(one.watch->add(*subscription, "a").has_value());
    REQUIRE(one.watch->add(*subscription, "b").has_value());
    REQUIRE(one.watch->add(*subscription, "a").has_value());
    CHECK(subscription->size() == 2);
    one.now["a"] = "changed";
    one.look_until([&] { return refused == 1; });
    CHECK(told.empty());
    room = true;
    one.look_until([&] { return !told.empty(); });
    CHECK(told == std::vector<std::string>{"a"});
    one.now["b"] = "changed";
    one.look_until([&] { return told.size() == 2; });
    CHECK(told.back() == "b");
    subscription.reset();
    CHECK(one.watch->watched() == 0);
    one.io.restart();
    (void)one.io.run();  // ends: nothing is looked at
}

TEST_CASE("what is not subscribed to is not looked at", "[mcp][changes]") {
    Watch one;
    int told = 0;
    const auto subscription = one.watch->open(kWatcher, [&](const std::string&) {
        ++told;
        return true;
    });
    REQUIRE(one.watch->add(*subscription, "a").has_value());
    subscription->remove("b");
    subscription->remove("a");
    one.now["a"] = "changed";
    (void)one.io.run();
    CHECK(told == 0);
    CHECK(one.looks == 1);
    REQUIRE(one.watch->add(*subscription, "a").has_value());
    one.watch->stop();
    one.now["a"] = "again";
    one.io.restart();
    (void)one.io.run();
    CHECK(told == 0);
}

TEST_CASE("subscriptions have bounds", "[mcp][changes]") {
    Watch one;
    const auto hear = [](const std::string&) { return true; };
    std::vector<std::shared_ptr<Subscription>> all;
    for (std::size_t i = 0; i < kSubscribedUrisTotalMax; ++i) {
        const std::size_t principal = i / kSubscribedUrisPrincipalMax;
        if (i % kSubscribedUrisMax == 0) {
            all.push_back(one.watch->open(watcher(principal), hear));
        }
        REQUIRE(one.watch->add(*all.back(), std::to_string(i)).has_value());
        if (i + 1 == kSubscribedUrisMax) {
            const Status beyond = one.watch->add(*all.back(), "one more");
            CHECK(beyond.error().code() == ErrorCode::kLimitExceeded);
        }
        if (i + 1 == kSubscribedUrisPrincipalMax) {
            // Of this principal no other client, and of another one every client.
            const auto own = one.watch->open(watcher(principal), hear);
            CHECK(one.watch->add(*own, "x").error().code() == ErrorCode::kLimitExceeded);
            const auto other = one.watch->open(watcher(principal + 1), hear);
            CHECK(one.watch->add(*other, "x").has_value());
        }
    }
    const auto last = one.watch->open(kWatcher, hear);
    CHECK(one.watch->add(*last, "x").error().code() == ErrorCode::kLimitExceeded);
    all.pop_back();
    CHECK(one.watch->add(*last, "x").has_value());
    // What has gone is not counted any more, for its principal either.
    const auto again =
        one.watch->open(watcher(kSubscribedUrisTotalMax / kSubscribedUrisPrincipalMax - 1), hear);
    CHECK(one.watch->add(*again, "x").has_value());
}

TEST_CASE("one turn looks at about kLooksPerTurn resources", "[mcp][changes]") {
    Watch one;
    std::vector<std::shared_ptr<Subscription>> all;
    constexpr std::size_t kAll = 4 * kLooksPerTurn;
    for (std::size_t i = 0; i < kAll; ++i) {
        if (i % kSubscribedUrisMax == 0) {
            all.push_back(one.watch->open(
                watcher(i / kSubscribedUrisPrincipalMax), [](const std::string&) { return true; }));
        }
        REQUIRE(one.watch->add(*all.back(), std::to_string(i)).has_value());
    }
    one.looks = 0;
    std::size_t most = 0;
    for (std::size_t before = 0; one.looks < kAll; before = one.looks) {
        one.io.restart();
        (void)one.io.run_one();
        most = std::max(most, one.looks - before);
    }
    CHECK(most <= kLooksPerTurn);
}

// --- over the endpoint

constexpr const char* kFile = "cellkeep://sessions/ses_1/files/a.txt";
const nlohmann::json kNone = nlohmann::json::object();

struct Subscribed {
    McpServer server;
    std::shared_ptr<FakeSession> session = server.backend.add();

    void put(const std::string& text) const {
        std::ofstream(server.backend.directory() + "/a.txt") << text;
    }
};

bool has_update(const std::string& text) {
    return text.find("notifications/resources/updated") != std::string::npos;
}

TEST_CASE("a client session hears of changes in its stream", "[mcp][changes]") {
    Subscribed one;
    const std::string id = one.server.begin("2025-11-25");
    const auto subscribed = one.server.in_session(id, "resources/subscribe", {{"uri", kFile}});
    CHECK(subscribed.json["result"] == kNone);
    one.server.meanwhile = [&] { one.put("new"); };
    one.server.client_goes_when = has_update;
    const auto heard = one.server.stream(id);
    CHECK(heard.headers.get("Content-Type") == "text/event-stream");
    REQUIRE(heard.events.size() == 1);
    CHECK(heard.events[0]["params"]["uri"] == kFile);
    CHECK_FALSE(heard.events[0]["params"].contains("_meta"));
    CHECK(
        one.server.in_session(id, "resources/unsubscribe", {{"uri", kFile}}).json["result"] ==
        kNone);
    CHECK(
        one.server.in_session(id, "resources/unsubscribe", {{"uri", kFile}})
            .json["error"]["code"] == -32002);
    CHECK(one.server.ask("DELETE", "", {{"Mcp-Session-Id", id}}).status == 204);
}

TEST_CASE("what is no resource of the principal's cannot be subscribed to", "[mcp][changes]") {
    Subscribed one;
    session::SessionOptions options;
    options.owner = "alice";
    const auto alices = one.server.backend.add(options);
    const std::string theirs = "cellkeep://sessions/" + alices->id() + "/files/a";
    const std::string id = one.server.begin("2025-11-25", bearer(kBobToken));
    const auto code = [&](const nlohmann::json& params) {
        const auto refused =
            one.server.in_session(id, "resources/subscribe", params, bearer(kBobToken));
        CHECK(refused.status == 200);
        return refused.json["error"]["code"].get<int>();
    };
    CHECK(code(kNone) == -32602);
    CHECK(code({{"uri", 5}}) == -32602);
    for (const std::string& uri :
         {theirs,
          std::string("cellkeep://sessions/missing/files/a"),
          std::string("cellkeep://sessions/ses_1/files/../a"),
          std::string("file:///etc/passwd"),
          std::string("test://watched-resource"),
          std::string()}) {
        CAPTURE(uri);
        CHECK(code({{"uri", uri}}) == -32002);
    }
    CHECK(
        one.server.in_session(id, "subscriptions/listen", kNone, bearer(kBobToken))
            .json["error"]["code"] == -32601);
    // Whose it is may.
    const std::string hers = one.server.begin("2025-11-25", bearer(kAliceToken));
    CHECK(
        one.server.in_session(hers, "resources/subscribe", {{"uri", theirs}}, bearer(kAliceToken))
            .json["result"] == kNone);
    CHECK(
        one.server.ask("DELETE", "", {{"Mcp-Session-Id", hers}, bearer(kAliceToken).front()})
            .status == 204);
}

TEST_CASE("a stream belongs to one client session, and ends with it", "[mcp][changes]") {
    Subscribed one;
    const std::string id = one.server.begin("2025-11-25");
    CHECK(one.server.stream("").status == 400);
    CHECK(one.server.stream("missing").status == 404);
    CHECK(one.server.stream(id, bearer(kAliceToken)).status == 404);
    CHECK(one.server.stream(id, bearer(kEveToken)).status == 403);
    CHECK(one.server.stream(id, {{"Accept", "application/json"}}).status == 406);
    CHECK(one.server.stream(id, {{"Origin", "https://evil.example"}}).status == 403);
    one.server.meanwhile = [&] {
        CHECK(one.server.stream(id).status == 409);
        CHECK(one.server.ask("DELETE", "", {{"Mcp-Session-Id", id}}).status == 204);
    };
    const auto ended = one.server.stream(id);
    CHECK(ended.status == 200);
    CHECK(ended.whole);
    CHECK(ended.events.empty());
}

nlohmann::json filter_of(const nlohmann::json& uris) {
    return {{"notifications", {{"resourceSubscriptions", uris}, {"toolsListChanged", true}}}};
}

TEST_CASE("a request of 2026-07-28 listens until its client goes", "[mcp][changes]") {
    Subscribed one;
    one.server.meanwhile = [&] { one.put("new"); };
    one.server.client_goes_when = has_update;
    const auto heard = one.server.call(
        "subscriptions/listen",
        filter_of({kFile, "cellkeep://sessions/missing/files/a", 5, "file:///etc/passwd"}));
    CHECK_FALSE(heard.whole);
    REQUIRE(heard.events.size() == 2);
    CHECK(heard.events[0]["method"] == "notifications/subscriptions/acknowledged");
    // Only what there is, and no kind that never comes.
    CHECK(
        heard.events[0]["params"]["notifications"] ==
        nlohmann::json{{"resourceSubscriptions", {kFile}}});
    for (const auto& event : heard.events) {
        CHECK(event["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == 1);
    }
    CHECK(heard.events[1]["params"]["uri"] == kFile);
}

TEST_CASE("a listening request ends whole when the server stops", "[mcp][changes]") {
    Subscribed one;
    one.server.stops = true;
    const auto ended = one.server.call("subscriptions/listen", filter_of({kFile}));
    CHECK(ended.whole);
    const auto& result = ended.message()["result"];
    CHECK(result["resultType"] == "complete");
    CHECK(result["_meta"]["io.modelcontextprotocol/subscriptionId"] == 1);
}

TEST_CASE("what cannot listen is refused", "[mcp][changes]") {
    Subscribed one;
    for (const nlohmann::json& params :
         {kNone,
          nlohmann::json{{"notifications", nullptr}},
          nlohmann::json{{"notifications", nlohmann::json::array()}},
          nlohmann::json{{"notifications", "x"}}}) {
        CAPTURE(params);
        const auto refused = one.server.call("subscriptions/listen", params);
        CHECK(refused.status == 400);
        CHECK(refused.json["error"]["code"] == -32602);
    }
    CHECK(
        one.server
            .call("subscriptions/listen", filter_of({kFile}), {{"Accept", "application/json"}})
            .status == 406);
}

TEST_CASE("a principal listens kListensMax times at once", "[mcp][changes]") {
    FakeSessionService backend;
    Front front(backend.io, backend, {"9.9"});
    std::size_t refused = 0;
    const auto listen = [&](const char* principal) {
        const auto call = std::make_shared<Call>(
            http::Principal{principal, http::Role::kAgent}, Peer{Era::kStateless, "", {}, {}});
        Message message;
        message.id = 1;
        message.method = "subscriptions/listen";
        message.params = filter_of(nlohmann::json::array());
        boost::asio::co_spawn(
            backend.io,
            front.answer(call, message),
            [&, call](std::exception_ptr thrown, const Answerer::Answer& answer) {
                REQUIRE_FALSE(thrown);
                refused += std::holds_alternative<RpcError>(answer) ? 1U : 0U;
            });
        backend.io.restart();
        (void)backend.io.poll();
    };
    for (std::size_t i = 0; i < kListensMax; ++i) {
        listen("alice");
    }
    CHECK(refused == 0);
    listen("alice");
    CHECK(refused == 1);
    listen("bob");
    CHECK(refused == 1);
    front.stop();
    backend.io.restart();
    (void)backend.io.run();
    listen("alice");
    CHECK(refused == 1);
    front.stop();
    backend.io.restart();
    (void)backend.io.run();
}

}  // namespace
}  // namespace cellkeep::mcp::test
