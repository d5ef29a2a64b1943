// SPDX-License-Identifier: Apache-2.0
//
// Approvals of clients with a session: they are asked in the stream of the call.
#include "kernel-manager/mcp/limits.hpp"
#include "tests/unit/mcp/waiting_run.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace cellkeep::mcp::test {
namespace {

TEST_CASE("a client with a session is asked in the stream of its call", "[mcp][approvals]") {
    InStream test;
    const auto answer = test.run([&] { test.reply({{"result", kApproves}}, "ask_1"); });
    CHECK(InStream::methods(answer) == Words{"elicitation/create", "response"});
    CHECK(answer.message()["result"]["structuredContent"]["status"] == "ok");
    CHECK(test.said() == Words{"approved by admin"});
    // The same answer again is one to nothing.
    test.reply({{"result", kApproves}}, "ask_1");
    CHECK(test.said().size() == 1);
}

TEST_CASE("an answer elsewhere takes the question back", "[mcp][approvals]") {
    InStream test;
    const auto answer = test.run([&] {
        REQUIRE(test.server.approvals->settle(test.tools->id, ApprovalAnswer::kDenied, "admin")
                    .has_value());
        test.run_loop();
        test.reply({{"result", kApproves}}, "ask_1");
    });
    CHECK(
        InStream::methods(answer) ==
        Words{"elicitation/create", "notifications/cancelled", "response"});
    CHECK(answer.events[1]["params"]["requestId"] == "ask_1");
    CHECK(test.said() == Words{"denied by admin"});
}

TEST_CASE("a run that ends takes the question back", "[mcp][approvals]") {
    InStream test;
    const auto answer = test.run([&] {
        test.finish();
        test.run_loop();
        test.reply({{"result", kApproves}}, "ask_1");
    });
    CHECK(
        InStream::methods(answer) ==
        Words{"elicitation/create", "notifications/cancelled", "response"});
    CHECK(test.said().empty());
    CHECK(test.server.approvals->size() == 0);
}

TEST_CASE("a call that is cancelled while it asks interrupts its run", "[mcp][approvals]") {
    InStream test;
    const auto answer = test.run([&] {
        (void)test.server.in_session(test.id, "notifications/cancelled", {{"requestId", 7}});
        test.run_loop();
        test.reply({{"result", kApproves}}, "ask_1");
    });
    CHECK(test.session->interrupts == 1);
    CHECK(test.said().empty());
    CHECK(InStream::methods(answer)[1] == "notifications/cancelled");
}

TEST_CASE("another principal cannot answer in a client's session", "[mcp][approvals]") {
    InStream test;
    const auto answer = test.run([&] {
        json message = {{"jsonrpc", "2.0"}, {"id", "ask_1"}, {"result", kApproves}};
        Fields fields = bearer(kAliceToken);
        fields.emplace_back("Mcp-Session-Id", test.id);
        CHECK(test.server.ask("POST", message.dump(), fields).status == 404);
        test.run_loop();
        CHECK(test.said().empty());
        // Nor does a session of the same principal answer for another one.
        const std::string other = test.server.begin("2025-11-25", {}, kShowsForms);
        CHECK(test.server.ask("POST", message.dump(), {{"Mcp-Session-Id", other}}).status == 202);
        test.run_loop();
        CHECK(test.said().empty());
        test.reply({{"result", decide("deny")}}, "ask_1");
    });
    CHECK(test.said() == Words{"denied by admin"});
    CHECK(answer.whole);
}

TEST_CASE("a client that ends its session or refuses decides nothing", "[mcp][approvals]") {
    const std::vector<std::function<void(InStream&)>> ways = {
        [](InStream& test) {
            CHECK(test.server.ask("DELETE", "", {{"Mcp-Session-Id", test.id}}).status == 204);
        },
        [](InStream& test) {
            test.reply({{"error", {{"code", -1}, {"message", "no user here"}}}}, "ask_1");
        },
        [](InStream& test) {
            test.reply({{"result", {{"action", "cancel"}}}}, "ask_1");
        },
        [](InStream& test) {
            test.reply({{"result", {{"action", "accept"}}}}, "ask_1");
        },
        [](InStream& test) {
            test.reply({{"result", decide("perhaps")}}, "ask_1");
        }};
    for (const auto& way : ways) {
        InStream test;
        const auto answer = test.run([&] {
            way(test);
            test.run_loop();
            CHECK(test.said().empty());
            CHECK(test.server.approvals->size() == 1);
            test.finish();
        });
        CHECK(test.said().empty());
        CHECK(answer.message()["result"]["structuredContent"]["status"] == "ok");
    }
}

TEST_CASE("a client that asks for JSON alone is not asked", "[mcp][approvals]") {
    InStream test;
    const auto answer = test.run([&] { test.finish(); }, {{"Accept", "application/json"}});
    CHECK(answer.events.empty());
    CHECK(answer.json["result"]["structuredContent"]["status"] == "ok");
}

TEST_CASE("a lost connection loses no question's answer", "[mcp][approvals]") {
    InStream test;
    test.server.client_goes_when = [](const std::string& text) {
        return text.find("elicitation/create") != std::string::npos;
    };
    test.server.meanwhile = [&] {
        test.call_tool();
        test.run_loop();
    };
    const auto answer = test.server.in_session(test.id, "tools/call", kRun);
    CHECK_FALSE(answer.whole);
    CHECK(test.session->interrupts == 0);
    CHECK(test.said().empty());
    test.reply({{"result", kApproves}}, "ask_1");
    test.run_loop();
    CHECK(test.said() == Words{"approved by admin"});
    const auto read = test.server.in_session(
        test.id,
        "tools/call",
        {{"name", "read_output"},
         {"arguments", {{"execution_id", "exe_1"}, {"session", "ses_1"}}}});
    CHECK(read.message()["result"]["structuredContent"]["status"] == "ok");
}

TEST_CASE("one request asks at most kCallApprovalsMax times", "[mcp][approvals]") {
    InStream test(static_cast<int>(kCallApprovalsMax) + 1);
    const auto answer = test.run([&] {
        for (std::size_t i = 1; i <= kCallApprovalsMax; ++i) {
            test.reply({{"result", kApproves}}, "ask_" + std::to_string(i));
            test.run_loop();
        }
        CHECK(test.said().size() == kCallApprovalsMax);
        CHECK(test.server.approvals->size() == 1);
        test.finish();
    });
    const auto methods = InStream::methods(answer);
    CHECK(
        std::count(methods.begin(), methods.end(), "elicitation/create") ==
        static_cast<std::ptrdiff_t>(kCallApprovalsMax));
}

}  // namespace
}  // namespace cellkeep::mcp::test
