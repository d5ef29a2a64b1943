// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/wire/revision.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <variant>

namespace cellkeep::mcp {
namespace {

constexpr const char* kVersion = "io.modelcontextprotocol/protocolVersion";
constexpr const char* kCapabilities = "io.modelcontextprotocol/clientCapabilities";

Message with_meta(nlohmann::json meta, MessageKind kind = MessageKind::kRequest) {
    Message message{kind, 3, "tools/list", nlohmann::json::object()};
    message.params["_meta"] = std::move(meta);
    return message;
}

RpcError refusal_of(const Message& message, const std::string& header) {
    const auto peer = read_peer(message, header);
    REQUIRE(std::holds_alternative<RpcError>(peer));
    return std::get<RpcError>(peer);
}

std::optional<Peer> peer_of(const Message& message, const std::string& header) {
    const auto peer = read_peer(message, header);
    REQUIRE(std::holds_alternative<std::optional<Peer>>(peer));
    return std::get<std::optional<Peer>>(peer);
}

TEST_CASE("a request that says so is of the stateless revision", "[mcp][revision]") {
    const auto peer = peer_of(
        with_meta({{kVersion, "2026-07-28"}, {kCapabilities, nlohmann::json::object()}}),
        "2026-07-28");
    REQUIRE(peer);
    CHECK(peer->era == Era::kStateless);
    CHECK(peer->revision == "2026-07-28");
    // A notification has no capabilities.
    CHECK(peer_of(with_meta({{kVersion, "2026-07-28"}}, MessageKind::kNotification), ""));
}

TEST_CASE("every other belongs to a client session", "[mcp][revision]") {
    const Message plain{MessageKind::kRequest, 1, "ping", nlohmann::json::object()};
    for (const char* header : {"", "2025-11-25", "2025-06-18", "2025-03-26"}) {
        CHECK_FALSE(peer_of(plain, header));
        CHECK_FALSE(peer_of(with_meta({{"progressToken", 1}}), header));
    }
    const Message begin{MessageKind::kRequest, 1, "initialize", nlohmann::json::object()};
    CHECK_FALSE(peer_of(begin, "2099-01-01"));  // the body says which it wants
}

TEST_CASE("a revision that this server does not speak is refused by name", "[mcp][revision]") {
    for (const char* asked : {"1900-01-01", "2025-11-25", "2026-07-29", ""}) {
        CAPTURE(asked);
        const RpcError error = refusal_of(
            with_meta({{kVersion, asked}, {kCapabilities, nlohmann::json::object()}}), asked);
        CHECK(error.code == RpcCode::kUnsupportedVersion);
        CHECK(error.id == 3);
        CHECK(error.data["requested"] == asked);
        CHECK(error.data["supported"][0] == "2026-07-28");
    }
    const Message plain{MessageKind::kRequest, 1, "ping", nlohmann::json::object()};
    for (const char* header : {"1900-01-01", "2024-11-05", "x"}) {
        CAPTURE(header);
        CHECK(refusal_of(plain, header).code == RpcCode::kUnsupportedVersion);
    }
}

TEST_CASE("a stateless request that lacks what it must say is refused", "[mcp][revision]") {
    for (const nlohmann::json& meta :
         {nlohmann::json::object(),
          nlohmann::json{{kCapabilities, nlohmann::json::object()}},
          nlohmann::json{{kVersion, 5}},
          nlohmann::json{{kVersion, "2026-07-28"}},
          nlohmann::json{{kVersion, "2026-07-28"}, {kCapabilities, "none"}},
          nlohmann::json("text")}) {
        CAPTURE(meta);
        CHECK(refusal_of(with_meta(meta), "2026-07-28").code == RpcCode::kInvalidParams);
    }
}

TEST_CASE(
    "a header that names another version than the body is refused as that", "[mcp][revision]") {
    for (const char* version : {"2026-07-28", "1900-01-01", "2025-11-25"}) {
        const Message message =
            with_meta({{kVersion, version}, {kCapabilities, nlohmann::json::object()}});
        for (const char* header : {"2025-06-18", "v999.0.0"}) {
            CAPTURE(version, header);
            CHECK(refusal_of(message, header).code == RpcCode::kHeaderMismatch);
        }
    }
}

TEST_CASE("initialize gets what it asks for, or the newest with sessions", "[mcp][revision]") {
    for (const char* known : {"2025-11-25", "2025-06-18", "2025-03-26"}) {
        CHECK(negotiate(known) == known);
    }
    for (const char* other : {"2024-11-05", "2026-07-28", "2099-01-01", "", "nonsense"}) {
        CHECK(negotiate(other) == "2025-11-25");
    }
}

TEST_CASE("a progress token is an integer or a short string", "[mcp][revision]") {
    const auto token = [](const nlohmann::json& value) {
        return read_progress_token(with_meta({{"progressToken", value}}));
    };
    CHECK(std::get<nlohmann::json>(token(5)) == 5);
    CHECK(std::get<nlohmann::json>(token("x")) == "x");
    CHECK(std::get<nlohmann::json>(read_progress_token(with_meta(nlohmann::json::object())))
              .is_null());
    for (const nlohmann::json& wrong :
         {nlohmann::json(),
          nlohmann::json(1.5),
          nlohmann::json(true),
          nlohmann::json::object(),
          nlohmann::json::array(),
          nlohmann::json(std::string(300, 'x'))}) {
        CAPTURE(wrong);
        CHECK(std::holds_alternative<RpcError>(token(wrong)));
    }
}

}  // namespace
}  // namespace cellkeep::mcp
