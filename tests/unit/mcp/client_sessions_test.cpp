// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/transport/client_sessions.hpp"

#include "kernel-manager/mcp/limits.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::mcp {
namespace {

std::string opened(ClientSessions& sessions, const std::string& principal) {
    static boost::asio::io_context io;
    auto id =
        sessions.open(principal, "2025-11-25", std::make_shared<Client>(io, ClientCapabilities{}));
    REQUIRE(id.has_value());
    return id.value();
}

TEST_CASE("a client session is its principal's alone", "[mcp][sessions]") {
    ClientSessions sessions;
    const std::string id = opened(sessions, "alice");
    CHECK(id.size() == 32);
    CHECK(opened(sessions, "alice") != id);
    REQUIRE(sessions.find(id, "alice") != nullptr);
    CHECK(sessions.find(id, "alice")->revision == "2025-11-25");
    for (const char* other : {"bob", "", "admin", "alice "}) {
        CHECK(sessions.find(id, other) == nullptr);
        CHECK_FALSE(sessions.close(id, other));
    }
    for (const char* wrong : {"", "x", "00000000000000000000000000000000"}) {
        CHECK(sessions.find(wrong, "alice") == nullptr);
    }
    const auto client = sessions.find(id, "alice")->client;
    CHECK(client->questions().add().has_value());
    CHECK(sessions.close(id, "alice"));
    CHECK(client->questions().add().has_error());
    CHECK_FALSE(sessions.close(id, "alice"));
    CHECK(sessions.find(id, "alice") == nullptr);
}

TEST_CASE(
    "of a principal's sessions beyond kPrincipalClientSessionsMax the longest unused goes",
    "[mcp][sessions]") {
    ClientSessions sessions;
    const std::string others = opened(sessions, "bob");
    const std::string first = opened(sessions, "alice");
    const std::string second = opened(sessions, "alice");
    for (std::size_t i = 2; i < kPrincipalClientSessionsMax; ++i) {
        (void)opened(sessions, "alice");
    }
    CHECK(sessions.find(first, "alice") != nullptr);  // so the second is the oldest now
    (void)opened(sessions, "alice");
    CHECK(sessions.find(first, "alice") != nullptr);
    CHECK(sessions.find(second, "alice") == nullptr);
    CHECK(sessions.find(others, "bob") != nullptr);
    CHECK(sessions.size() == kPrincipalClientSessionsMax + 1);
}

TEST_CASE("there are at most kClientSessionsMax of all principals", "[mcp][sessions]") {
    ClientSessions sessions;
    const std::string oldest = opened(sessions, "first");
    for (std::size_t i = 1; i < kClientSessionsMax; ++i) {
        (void)opened(sessions, "p" + std::to_string(i / kPrincipalClientSessionsMax));
    }
    CHECK(sessions.size() == kClientSessionsMax);
    CHECK(sessions.find(oldest, "nobody's") == nullptr);
    (void)opened(sessions, "last");
    CHECK(sessions.size() == kClientSessionsMax);
    CHECK(sessions.find(oldest, "first") == nullptr);
}

TEST_CASE("a notification cancels the request that it names", "[mcp][sessions]") {
    CallsInFlight calls;
    const auto call = std::make_shared<Call>(http::Principal{"a", http::Role::kAgent}, Peer{});
    CHECK(calls.add(1, call));
    CHECK_FALSE(calls.add(1, call));
    const auto cancel = [&](const nlohmann::json& params) {
        calls.cancel({MessageKind::kNotification, {}, "notifications/cancelled", params});
    };
    for (const nlohmann::json& other :
         {nlohmann::json::object(),
          nlohmann::json{{"requestId", "1"}},
          nlohmann::json{{"requestId", 2}},
          nlohmann::json{{"requestId", nullptr}},
          nlohmann::json{{"requestId", nlohmann::json::array()}}}) {
        CAPTURE(other);
        cancel(other);
        CHECK_FALSE(call->cancelled());
    }
    cancel({{"requestId", 1}});
    CHECK(call->cancelled());
    calls.remove(1);
    CHECK(calls.size() == 0);
}

}  // namespace
}  // namespace cellkeep::mcp
