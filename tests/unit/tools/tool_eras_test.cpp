// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/tools/limits.hpp"
#include "protocol/tool_request.hpp"
#include "tests/unit/tools/brokered.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::tools {
namespace {

using nlohmann::json;

constexpr const char* kVersionKey = "io.modelcontextprotocol/protocolVersion";

json refused(int code, json data = nullptr) {
    return {{"code", code}, {"message", "No."}, {"data", std::move(data)}};
}

/// It knows no handshake.
void speak_stateless(Brokered& test, json capabilities = json::object()) {
    test.server->refuse = [](const json& request) {
        return request["method"] == "initialize" ? refused(-32601) : json();
    };
    test.server->answer = [usual = test.server->answer, capabilities = std::move(capabilities)](
                              const json& request) -> std::optional<json> {
        if (request["method"] == "subscriptions/listen") {
            return std::nullopt;
        }
        if (request["method"] == "server/discover") {
            return json{
                {"resultType", "complete"},
                {"supportedVersions", {"2026-07-28"}},
                {"capabilities", capabilities}};
        }
        return usual(request);
    };
}

/// What a call of the tool is sent with.
RpcRequest call_request(Brokered& test, const json& arguments = json::object()) {
    CHECK(test.call("the_server.read_it", arguments)["status"] == "ok");
    return test.server->requests.back();
}

bool has_header(const RpcRequest& request, const std::string& name, const std::string& value) {
    return std::find(request.headers.begin(), request.headers.end(), std::pair(name, value)) !=
           request.headers.end();
}

TEST_CASE("a server of 2026-07-28 is spoken to in its revision", "[tools]") {
    Brokered test(Brokered::kUsualRules, [](Brokered& one) { speak_stateless(one); });
    const RpcRequest call = call_request(test, {{"a", 1}});
    CHECK(test.server->count("initialize") == 0);
    CHECK(test.server->count("notifications/initialized") == 0);
    for (const json& message : test.server->received) {
        CAPTURE(message.dump());
        const json meta = message["params"]["_meta"];
        CHECK(meta[kVersionKey] == "2026-07-28");
        CHECK(meta["io.modelcontextprotocol/clientCapabilities"] == json::object());
    }
    for (const RpcRequest& request : test.server->requests) {
        CHECK(request.stateless);
        CHECK(has_header(request, "MCP-Protocol-Version", "2026-07-28"));
    }
    CHECK(test.server->received.back()["params"]["arguments"] == json{{"a", 1}});
    CHECK(has_header(call, "Mcp-Method", "tools/call"));
    CHECK(has_header(call, "Mcp-Name", "read-it"));
    // It may ask nothing, and gets no response.
    const std::size_t before = test.server->received.size();
    test.server->parts->on_notice({{"id", 7}, {"method", "ping"}});
    CHECK(test.server->received.size() == before);
}

TEST_CASE("any answer that no server of 2026-07-28 gives means the handshake", "[tools]") {
    const json other = {{"supported", {"2030-01-01", "2025-11-25"}}};
    for (const json& error :
         {refused(-32601),
          refused(-32602),
          refused(-32600),
          refused(0),
          json("a text"),
          json(5),
          refused(-32022),
          refused(-32022, {{"supported", "2026-07-28"}}),
          refused(-32022, other)}) {
        CAPTURE(error.dump());
        Brokered test(Brokered::kUsualRules, [&](Brokered& one) {
            one.server->refuse = [error](const json& request) {
                return request["method"] == "server/discover" ? error : json();
            };
        });
        CHECK_FALSE(call_request(test).stateless);
        CHECK_FALSE(test.server->received.back()["params"].contains("_meta"));
        CHECK(test.server->count("notifications/initialized") == 1);
    }
}

TEST_CASE("so does a result that names no revision of 2026-07-28, and silence", "[tools]") {
    for (const std::optional<json>& result : std::vector<std::optional<json>>{
             std::nullopt,
             json::object(),
             json{{"protocolVersion", "2026-07-28"}},
             json{{"supportedVersions", "2026-07-28"}},
             json{{"supportedVersions", {1, nullptr, "2025-06-18"}}}}) {
        CAPTURE(result.value_or("silence").dump());
        Brokered test(Brokered::kUsualRules, [&](Brokered& one) {
            one.server->refuse = [](const json& /*request*/) { return json(); };
            one.server->answer = [usual = one.server->answer, result](const json& request) {
                return request["method"] == "server/discover" ? result : usual(request);
            };
        });
        CHECK_FALSE(call_request(test).stateless);
        CHECK(test.server->count("server/discover") == 1);
    }
}

TEST_CASE("a server that ends at the question is begun anew without it", "[tools]") {
    Brokered test(
        Brokered::kUsualRules, [](Brokered& one) { one.server->ends_at = "server/discover"; });
    CHECK(test.server->opened == 2);
    CHECK(test.server->count("server/discover") == 1);
    CHECK_FALSE(call_request(test).stateless);
}

TEST_CASE("a server of 2026-07-28 that is slow to start is asked once more", "[tools]") {
    Brokered test(Brokered::kUsualRules, [](Brokered& one) {
        speak_stateless(one);
        one.server->answer = [usual = one.server->answer, &one](const json& request) {
            const bool first = one.server->count("initialize") == 0;
            return first ? std::optional<json>() : usual(request);
        };
    });
    CHECK(test.server->count("server/discover") == 2);
    CHECK(test.server->opened == 1);
    CHECK(call_request(test).stateless);
}

TEST_CASE(
    "a server that lies about its revisions is not used, and not asked on and on", "[tools]") {
    struct Lie {
        json error;   // of server/discover; null: it names 2026-07-28
        bool listed;  // it refuses that in tools/list
        std::size_t requests;
    };
    const json wanted = {{"supported", {"2026-07-28"}}};
    const json unknown = {{"supported", {"2030-01-01"}}};
    for (const Lie& lie :
         {Lie{refused(-32022, wanted), false, 1},
          Lie{refused(-32022, unknown), false, 1},
          Lie{refused(-32022, {{"supported", json::array()}}), false, 1},
          Lie{refused(-32021), true, 2},
          Lie{json(), true, 2}}) {
        CAPTURE(lie.error.dump());
        Brokered test(Brokered::kUsualRules, [&](Brokered& one) {
            speak_stateless(one);
            one.has_tools = false;
            one.server->refuse = [lie, wanted](const json& request) {
                if (request["method"] == "server/discover") {
                    return lie.error;
                }
                return lie.listed ? refused(-32022, wanted) : json();
            };
        });
        CHECK(test.server->requests.size() == lie.requests);
        CHECK_FALSE(test.offers("the_server.read_it"));
    }
}

TEST_CASE("of the revisions that a server lists kRevisionsMax are looked at", "[tools]") {
    for (const bool within : {true, false}) {
        json many = json::array();
        while (many.size() < (within ? kRevisionsMax - 1 : kRevisionsMax)) {
            many.push_back("2030-01-01");
        }
        many.push_back("2026-07-28");
        Brokered test(Brokered::kUsualRules, [&](Brokered& one) {
            speak_stateless(one);
            one.has_tools = within;
            one.server->answer = [usual = one.server->answer, many](const json& request) {
                return request["method"] == "server/discover"
                           ? std::optional(json{{"supportedVersions", many}})
                           : usual(request);
            };
        });
        CHECK(test.offers("the_server.read_it") == within);
    }
}

TEST_CASE("a server of 2026-07-28 that tells of changes is listened to", "[tools]") {
    Brokered test(Brokered::kUsualRules, [](Brokered& one) {
        speak_stateless(one, {{"tools", {{"listChanged", true}}}});
    });
    test.run_until([&] { return test.server->count("subscriptions/listen") == 1; });
    const auto& asked = test.server->received.back()["params"];
    CHECK(asked["notifications"] == json{{"toolsListChanged", true}});
    CHECK(asked["_meta"][kVersionKey] == "2026-07-28");
    test.tools[0]["description"] = "Other.";
    test.server->parts->on_notice({{"method", "notifications/tools/list_changed"}});
    test.run_until([&] { return test.server->count("tools/list") == 2; });
}

TEST_CASE("arguments go into headers where a server over HTTP wants it", "[tools]") {
    const json schema = {
        {"type", "object"},
        {"properties", {{"place", {{"type", "string"}, {"x-mcp-header", "Region"}}}}}};
    const json wrong = {
        {"type", "object"},
        {"properties", {{"place", {{"type", "number"}, {"x-mcp-header", "Region"}}}}}};
    for (const bool http : {true, false}) {
        CAPTURE(http);
        Brokered test(Brokered::kUsualRules, [&](Brokered& one) {
            speak_stateless(one);
            if (http) {
                one.place = UrlPlace{};
            }
            one.tools[0]["inputSchema"] = schema;
            one.tools.push_back({{"name", "odd"}, {"inputSchema", wrong}});
        });
        const RpcRequest call = call_request(test, {{"place", "west 1"}});
        CHECK(has_header(call, "Mcp-Param-Region", "west 1") == http);
        // A tool with a schema that is wrong in this is left out where it matters.
        CHECK(test.offers("the_server.odd") == !http);
        CHECK(test.has_logged("tools_left_out") == http);
        const std::string large(kParameterHeaderBytesMax + 1, 'x');
        const json told = test.call("the_server.read_it", {{"place", large}});
        CHECK((told["status"] == "ok") == !http);
        if (http) {
            CHECK(told["reason"] == protocol::kToolRefusedTooLarge);
            const std::string most(kParameterHeaderBytesMax, 'x');
            CHECK(has_header(call_request(test, {{"place", most}}), "Mcp-Param-Region", most));
        }
    }
}

TEST_CASE("long arguments are read for their headers by the work thread", "[tools]") {
    Brokered test(Brokered::kUsualRules, [&](Brokered& one) {
        speak_stateless(one);
        one.place = UrlPlace{};
        one.tools[0]["inputSchema"] = {
            {"properties", {{"place", {{"type", "string"}, {"x-mcp-header", "Region"}}}}}};
    });
    const std::string text(kReadAtOnceBytesMax, 'x');
    const RpcRequest call = call_request(test, {{"text", text}, {"place", "here"}});
    CHECK(has_header(call, "Mcp-Param-Region", "here"));
}

TEST_CASE("a server that misses a header is asked for its tools again", "[tools]") {
    Brokered test(Brokered::kUsualRules, [](Brokered& one) {
        speak_stateless(one);
        one.server->refuse = [](const json& request) {
            return request["method"] == "tools/call" ? refused(-32020) : json();
        };
    });
    CHECK(test.reason_of("the_server.read_it") == protocol::kToolRefusedFailed);
    test.run_until([&] { return test.server->count("tools/list") == 2; });
}

}  // namespace
}  // namespace cellkeep::tools
