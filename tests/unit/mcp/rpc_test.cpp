// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/wire/rpc.hpp"

#include "kernel-manager/mcp/limits.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <variant>

namespace cellkeep::mcp {
namespace {

RpcCode refused_with(const std::string& text) {
    const auto parsed = parse_message(text);
    REQUIRE(std::holds_alternative<RpcError>(parsed));
    return std::get<RpcError>(parsed).code;
}

Message parsed_message(const std::string& text) {
    const auto parsed = parse_message(text);
    REQUIRE(std::holds_alternative<Message>(parsed));
    return std::get<Message>(parsed);
}

TEST_CASE("requests, notifications and responses are told apart", "[mcp][rpc]") {
    const Message request = parsed_message(R"({"jsonrpc":"2.0","id":1,"method":"ping"})");
    CHECK(request.kind == MessageKind::kRequest);
    CHECK(request.id == 1);
    CHECK(request.params == nlohmann::json::object());
    const Message named =
        parsed_message(R"({"jsonrpc":"2.0","id":"a","method":"m","params":{"x":1}})");
    CHECK(named.id == "a");
    CHECK(named.params["x"] == 1);
    CHECK(
        parsed_message(R"({"jsonrpc":"2.0","method":"notifications/x"})").kind ==
        MessageKind::kNotification);
    for (const char* response :
         {R"({"jsonrpc":"2.0","id":1,"result":{}})", R"({"jsonrpc":"2.0","id":1,"error":{}})"}) {
        CHECK(parsed_message(response).kind == MessageKind::kResponse);
    }
}

TEST_CASE("what is no JSON is a parse error", "[mcp][rpc]") {
    for (const char* text :
         {"",
          "{",
          "nonsense",
          "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}x",
          "{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}",
          "\xef\xbb\xbf{}",
          "{\"a\":\"\xff\"}",
          "{\"a\":NaN}"}) {
        CAPTURE(text);
        CHECK(refused_with(text) == RpcCode::kParseError);
    }
}

TEST_CASE("what is no message is an invalid request", "[mcp][rpc]") {
    for (const char* text :
         {"1",
          "null",
          "[]",
          R"([{"jsonrpc":"2.0","id":1,"method":"ping"}])",
          "{}",
          R"({"id":1,"method":"ping"})",
          R"({"jsonrpc":"1.0","id":1,"method":"ping"})",
          R"({"jsonrpc":2.0,"id":1,"method":"ping"})",
          R"({"jsonrpc":"2.0","id":null,"method":"ping"})",
          R"({"jsonrpc":"2.0","id":1.5,"method":"ping"})",
          R"({"jsonrpc":"2.0","id":true,"method":"ping"})",
          R"({"jsonrpc":"2.0","id":{},"method":"ping"})",
          R"({"jsonrpc":"2.0","id":1})",
          R"({"jsonrpc":"2.0","id":1,"method":5})"}) {
        CAPTURE(text);
        CHECK(refused_with(text) == RpcCode::kInvalidRequest);
    }
    for (const char* params : {"[]", "1", "null", "\"x\""}) {
        CAPTURE(params);
        CHECK(
            refused_with(
                R"({"jsonrpc":"2.0","id":1,"method":"ping","params":)" + std::string(params) +
                "}") == RpcCode::kInvalidParams);
    }
}

TEST_CASE("an id has at most kIdBytesMax", "[mcp][rpc]") {
    const auto with_id = [](std::size_t size) {
        return R"({"jsonrpc":"2.0","id":")" + std::string(size, 'i') + R"(","method":"ping"})";
    };
    CHECK(parsed_message(with_id(kIdBytesMax)).kind == MessageKind::kRequest);
    CHECK(refused_with(with_id(kIdBytesMax + 1)) == RpcCode::kInvalidRequest);
}

TEST_CASE("a message has at most kMessageValuesMax values", "[mcp][rpc]") {
    // The message, its params and the list count, too.
    const auto with_values = [](std::size_t count) {
        std::string list;
        for (std::size_t i = 0; i < count; ++i) {
            list += i == 0 ? "1" : ",1";
        }
        return R"({"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[)" + list + "]}}";
    };
    CHECK(parsed_message(with_values(kMessageValuesMax - 6)).kind == MessageKind::kRequest);
    CHECK(refused_with(with_values(kMessageValuesMax + 1)) == RpcCode::kParseError);
}

TEST_CASE("an error has an id only if one could be read", "[mcp][rpc]") {
    const RpcError error{RpcCode::kMethodNotFound, "what", {{"a", 1}}, 5};
    CHECK(
        error_message(error) ==
        nlohmann::json::parse(
            R"({"jsonrpc":"2.0","id":5,"error":{"code":-32601,"message":"what","data":{"a":1}}})"));
    const auto parsed = parse_message("[]");
    CHECK_FALSE(error_message(std::get<RpcError>(parsed)).contains("id"));
}

}  // namespace
}  // namespace cellkeep::mcp
