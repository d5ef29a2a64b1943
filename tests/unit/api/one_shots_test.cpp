// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/one_shots.hpp"

#include "protocol/limits.hpp"
#include "tests/unit/api/agent_api.hpp"

#include <boost/asio/co_spawn.hpp>
#include <catch2/catch.hpp>

#include <optional>
#include <string>
#include <utility>

namespace cellkeep::api::test {
namespace {

constexpr const char* kPath = "/v1/executions";

TEST_CASE("a one-shot execution is remembered when its sandbox is gone", "[agent][one-shot]") {
    Api api;
    const auto answer = api.ask("POST", kPath, R"({"code":"1"})");
    CHECK(answer.headers.get("Location") == "/v1/executions/exe_1");
    CHECK(api.backend.sessions.empty());
    CHECK(api.ask("GET", "/v1/executions/exe_1").json["stdout"] == "out");
    CHECK(api.ask("GET", "/v1/executions/exe_1/events?after=3").status == 204);
    CHECK(api.ask("POST", "/v1/executions/exe_1/interrupt").status == 409);
    CHECK(api.ask("GET", "/v1/executions/exe_2").status == 404);
    api.principal = {"somebody else", http::Role::kAgent};
    CHECK(api.ask("GET", "/v1/executions/exe_1").status == 404);
    CHECK(api.ask("POST", "/v1/executions/exe_1/interrupt").status == 404);
}

TEST_CASE("a one-shot execution streams and answers later", "[agent][one-shot]") {
    Api api;
    const auto stream =
        api.ask("POST", kPath, R"({"code":"1"})", {{"Accept", "text/event-stream"}});
    CHECK(stream.whole);
    CHECK(stream.text.find("event: finished") != std::string::npos);
    const auto later = api.ask("POST", kPath, R"({"code":"1"})", {{"Prefer", "respond-async"}});
    CHECK(later.status == 202);
    CHECK(api.backend.sessions.empty());
}

TEST_CASE("an identical run is answered from the cache, another one is not", "[agent][one-shot]") {
    Api api;
    const auto ask = [&](const char* body) { return api.ask("POST", kPath, body).json; };
    const auto first = ask(R"({"code":"1","cache_ttl_s":60,"reasoning":"a"})");
    CHECK(first["cached"] == false);
    const auto again = ask(R"({"reasoning":"b","code":"1","cache_ttl_s":60})");
    CHECK(again["cached"] == true);
    CHECK(again["id"] == first["id"]);
    CHECK(again["reasoning"] == "b");
    const auto tagged = ask(R"({"code":"1","cache_ttl_s":60,"metadata":{"n":2}})");
    CHECK(tagged["reasoning"] == "");
    CHECK(tagged["metadata"] == nlohmann::json({{"n", 2}}));
    CHECK(api.backend.asked.size() == 1);
    CHECK(ask(R"({"code":"1"})")["cached"] == false);
    CHECK(ask(R"({"code":"2","cache_ttl_s":60})")["cached"] == false);
    CHECK(ask(R"({"code":"1","stdin":"x","cache_ttl_s":60})")["cached"] == false);
    CHECK(ask(R"({"code":"1","env":{"A":"1"},"cache_ttl_s":60})")["cached"] == false);
    CHECK(ask(R"({"code":"1","limits":{"wall_ms":5},"cache_ttl_s":60})")["cached"] == false);
    CHECK(
        ask(R"({"code":"1","files":[{"path":"a","text":""}],"cache_ttl_s":60})")["cached"] ==
        false);
    api.principal = {"somebody else", http::Role::kAgent};
    CHECK(ask(R"({"code":"1","cache_ttl_s":60})")["cached"] == false);
}

TEST_CASE("a time to live past its bound is refused", "[agent][one-shot]") {
    Api api;
    // limits::kCacheTtlMax
    const std::string most = std::to_string(limits::kCacheTtlMax.count());
    const std::string more = std::to_string(limits::kCacheTtlMax.count() + 1);
    CHECK(api.ask("POST", kPath, R"({"code":"","cache_ttl_s":)" + most + "}").status == 200);
    CHECK(api.ask("POST", kPath, R"({"code":"","cache_ttl_s":)" + more + "}").status == 422);
    CHECK(api.ask("POST", kPath, R"({"code":"","cache_ttl_s":-1})").status == 422);
}

TEST_CASE("the cache and the memory of runs are bounded", "[agent][one-shot]") {
    Api api;
    // limits::kCachedAnswersMax, limits::kOneShotsMax
    static_assert(limits::kCachedAnswersMax == limits::kOneShotsMax);
    CHECK(limits::kCachedAnswersBytesMax == limits::kOneShotsBytesMax);
    const OneShotBounds bounds;
    CHECK(bounds.runs == limits::kOneShotsMax);
    CHECK(bounds.bytes == limits::kOneShotsBytesMax);
    CHECK(bounds.keys == limits::kIdempotencyKeysMax);
    CHECK(bounds.all_bytes == limits::kOneShotsAllBytesMax);
    CHECK(limits::kOneShotMemory.count() == 3600);
    const auto ask = [&](std::size_t number) {
        const std::string code = R"({"cache_ttl_s":60,"code":")" + std::to_string(number) + "\"}";
        return api.ask("POST", kPath, code).json["cached"].get<bool>();
    };
    for (std::size_t i = 0; i < limits::kCachedAnswersMax; ++i) {
        REQUIRE_FALSE(ask(i));
    }
    CHECK(ask(0));
    CHECK_FALSE(ask(limits::kCachedAnswersMax));
    CHECK(ask(limits::kCachedAnswersMax));
    CHECK_FALSE(ask(0));
}

TEST_CASE("an idempotency key runs once, also while the sandbox is made", "[agent][one-shot]") {
    Api api;
    const char* body = R"({"code":"1","idempotency_key":"k"})";
    const auto first = api.ask("POST", kPath, body);
    CHECK(api.ask("POST", kPath, body).json["id"] == first.json["id"]);
    CHECK(api.backend.asked.size() == 1);
    const auto other = api.ask("POST", kPath, R"({"code":"2","idempotency_key":"k"})");
    CHECK(other.status == 422);
    CHECK(other.json["type"] == "/problems/idempotency-key-reused");
    api.principal = {"somebody else", http::Role::kAgent};
    CHECK(api.ask("POST", kPath, body).status == 200);
    CHECK(api.backend.asked.size() == 2);
}

TEST_CASE("a request with another reasoning is the same request", "[agent][one-shot]") {
    Api api;
    const auto first =
        api.ask("POST", kPath, R"({"code":"1","idempotency_key":"k","reasoning":"a"})");
    const auto again = api.ask(
        "POST", kPath, R"({"code":"1","idempotency_key":"k","reasoning":"b","metadata":{"n":2}})");
    CHECK(again.json["id"] == first.json["id"]);
    CHECK(again.json["reasoning"] == "a");
}

TEST_CASE("executions of one principal do not push out the keys of another", "[agent][one-shot]") {
    Api api;
    const char* body = R"({"code":"1","idempotency_key":"k"})";
    const auto first = api.ask("POST", kPath, body);
    api.principal = {"somebody else", http::Role::kAgent};
    for (std::size_t i = 0; i <= limits::kOneShotsMax; ++i) {
        REQUIRE(api.ask("POST", kPath, R"({"code":"2"})").status == 200);
    }
    api.principal = {"admin", http::Role::kAdmin};
    CHECK(api.ask("POST", kPath, body).json["id"] == first.json["id"]);
}

TEST_CASE("a key whose answer is forgotten does not run again", "[agent][one-shot]") {
    Api api;
    const char* body = R"({"code":"1","idempotency_key":"k"})";
    REQUIRE(api.ask("POST", kPath, body).status == 200);
    for (std::size_t i = 0; i < limits::kOneShotsMax; ++i) {
        REQUIRE(api.ask("POST", kPath, R"({"code":"2"})").status == 200);
    }
    const std::size_t ran = api.backend.asked.size();
    const auto gone = api.ask("POST", kPath, body);
    CHECK(gone.status == 410);
    CHECK(gone.json["type"] == "/problems/answer-forgotten");
    CHECK(api.ask("POST", kPath, R"({"code":"2","idempotency_key":"k"})").status == 422);
    CHECK(api.backend.asked.size() == ran);
}

/// A registry with bounds of its own, and helpers to ask it.
struct Bounded {
    session::test::FakeSessionService backend;
    OneShots runs;

    explicit Bounded(const OneShotBounds& bounds) : runs(backend, bounds) {}
    Result<OneShots::Begun> begin(const std::string& owner, const std::string& key = {}) {
        OneShotOrder order;
        order.options.language = "python";
        order.options.owner = owner;
        order.execution.request.code = "1";
        order.execution.request.idempotency_key = key;
        order.digest = "of the body";
        std::optional<Result<OneShots::Begun>> begun;
        boost::asio::co_spawn(
            backend.io,
            [&]() -> boost::asio::awaitable<void> {
                begun.emplace(co_await runs.begin(std::move(order), owner));
            },
            [](std::exception_ptr thrown) { REQUIRE_FALSE(thrown); });
        backend.io.restart();
        (void)backend.io.run();
        return std::move(*begun);
    }
    bool knows(const Result<OneShots::Begun>& begun) {
        return runs.find(begun.value().run.execution->id()) != nullptr;
    }
};

TEST_CASE("keys are bounded, the oldest go first", "[agent][one-shot]") {
    // limits::kIdempotencyKeysMax
    OneShotBounds bounds;
    bounds.keys = 2;
    Bounded fixture(bounds);
    for (const char* key : {"a", "b", "c"}) {
        CHECK(fixture.begin("one", key).value().from == OneShots::From::kRun);
    }
    CHECK(fixture.begin("other", "d").value().from == OneShots::From::kRun);
    CHECK(fixture.begin("one", "b").value().from == OneShots::From::kKey);
    CHECK(fixture.begin("one", "c").value().from == OneShots::From::kKey);
    CHECK(fixture.begin("one", "a").value().from == OneShots::From::kRun);
}

TEST_CASE(
    "past the bound for all runs, the principal with most of them loses its oldest",
    "[agent][one-shot]") {
    // limits::kOneShotsBytesMax, limits::kOneShotsAllBytesMax
    OneShotBounds bounds;
    const auto bytes_of_one = [] {
        Bounded one{OneShotBounds()};
        return one.begin("x").value().run.execution->events().bytes();
    }();
    REQUIRE(bytes_of_one > 0);
    bounds.all_bytes = 3 * bytes_of_one + bytes_of_one / 2;  // ids differ in length
    Bounded fixture(bounds);
    const auto small = fixture.begin("small");
    const auto first = fixture.begin("large");
    const auto second = fixture.begin("large");
    CHECK(fixture.knows(first));
    const auto third = fixture.begin("large");
    CHECK_FALSE(fixture.knows(first));
    CHECK(fixture.knows(small));
    CHECK(fixture.knows(second));
    CHECK(fixture.knows(third));

    bounds.bytes = bytes_of_one + bytes_of_one / 2;
    Bounded narrow(bounds);
    const auto before = narrow.begin("one");
    const auto after = narrow.begin("one");
    CHECK_FALSE(narrow.knows(before));
    CHECK(narrow.knows(after));
}

TEST_CASE("a key whose run was refused is free again", "[agent][one-shot]") {
    Api api;
    const char* body = R"({"code":"1","idempotency_key":"k"})";
    api.backend.failure = Error(ErrorCode::kUnavailable, "full");
    CHECK(api.ask("POST", kPath, body).status == 503);
    api.backend.failure.reset();
    CHECK(api.ask("POST", kPath, body).status == 200);
}

}  // namespace
}  // namespace cellkeep::api::test
