// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/passed.hpp"

#include "kernel-manager/mcp/asking/state_seal.hpp"
#include "kernel-manager/mcp/limits.hpp"
#include "tests/unit/mcp/mcp_server.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <string>

namespace cellkeep::mcp::test {
namespace {

using nlohmann::json;

constexpr const char* kPassedFile = "cellkeep://sessions/ses_1/files/a.txt";
const Task::Time kMade = Task::Time(std::chrono::hours(500'000));

/// As it comes to the other program.
json through_bytes(const json& value) {
    return json::from_cbor(json::to_cbor(value));
}

void pass(McpServer& from, McpServer& to) {
    REQUIRE(to.endpoint().go_on(through_bytes(from.endpoint().pass_on())).has_value());
}

PassedClients example() {
    PassedClients passed;
    PassedClient plain;
    plain.id = "1";
    plain.principal = "alice";
    plain.revision = "2025-11-25";
    plain.used = 7;
    PassedClient rich = plain;
    rich.id = "2";
    rich.capabilities = {true, false, true, true};
    rich.log_level = LogLevel::kEmergency;
    rich.subscription = {{"alice", http::Role::kAgent}, {{kPassedFile, "like this"}}};
    passed.clients = {plain, rich};
    passed.uses = 8;
    Task task;
    task.id = "tsk_1";
    task.principal = "alice";
    task.place = {"work", "ses_1", State::kLost, "a note", true};
    task.execution_id = "exe_1";
    task.created = kMade;
    task.updated = kMade + std::chrono::seconds(3);
    task.status = "completed";
    task.told = true;
    passed.tasks = {task};
    passed.seal_key = "key";
    return passed;
}

TEST_CASE("what passes of MCP comes as it went", "[mcp][passing]") {
    const json written = to_json(example());
    const auto read = read_passed_clients(through_bytes(written));
    REQUIRE(read.has_value());
    CHECK(to_json(read.value()) == written);
    CHECK(read.value().tasks.front().created == kMade);
    CHECK(read.value().clients.back().capabilities.roots);
    CHECK_FALSE(read.value().clients.back().capabilities.sampling);
    CHECK(read_passed_clients(to_json(PassedClients())).value().clients.empty());
}

TEST_CASE("what did not pass whole is refused", "[mcp][passing]") {
    const auto refused = [](const json& value) {
        const auto read = read_passed_clients(value);
        return read.has_error() && read.error().code() == ErrorCode::kProtocol;
    };
    for (const json& wrong : {json(), json(5), json("{}"), json::array(), json::object()}) {
        CAPTURE(wrong);
        CHECK(refused(wrong));
    }
    const json good = to_json(example()).flatten();
    for (const auto& [at, value] : good.items()) {
        CAPTURE(at);
        const json::json_pointer place(at);
        json other = good.unflatten();
        other[place] = json::array();
        // Nothing is asked for a name, and any text is what a resource may be like.
        CHECK(refused(other));
        json without = good.unflatten();
        without[place.parent_pointer()].erase(place.back());
        CHECK((refused(without) || place.parent_pointer().back() == "seen"));
    }
    for (const char* number :
         {"/clients/1/log_level", "/clients/1/subscription/role", "/tasks/0/before"}) {
        for (const int unknown : {-1, 99}) {
            CAPTURE(number, unknown);
            json other = to_json(example());
            other[json::json_pointer(number)] = unknown;
            CHECK(refused(other));
        }
    }
}

TEST_CASE("a client session goes on in another program, for its principal", "[mcp][passing]") {
    McpServer before;
    const std::string id = before.begin("2025-11-25", bearer(kAliceToken));
    const std::string ended = before.begin("2025-11-25", bearer(kAliceToken));
    const auto remove = [](McpServer& server, const std::string& session) {
        return server.ask("DELETE", "", {{"Mcp-Session-Id", session}, bearer(kAliceToken).front()})
            .status;
    };
    CHECK(remove(before, ended) == 204);
    McpServer after;
    CHECK(after.in_session(id, "ping", json::object(), bearer(kAliceToken)).status == 404);
    pass(before, after);
    CHECK(after.in_session(id, "ping", json::object(), bearer(kAliceToken)).status == 200);
    CHECK(after.in_session(id, "ping", json::object(), bearer(kBobToken)).status == 404);
    CHECK(after.in_session(ended, "ping", json::object(), bearer(kAliceToken)).status == 404);
    CHECK(remove(after, id) == 204);
    CHECK(remove(after, id) == 404);
}

TEST_CASE("a client hears of what has changed between two programs", "[mcp][passing]") {
    McpServer before;
    const auto of_before = before.backend.add();
    const std::string id = before.begin("2025-11-25");
    const json file = {{"uri", kPassedFile}};
    REQUIRE(before.in_session(id, "resources/subscribe", file).json["result"] == json::object());
    McpServer after;
    const auto of_after = after.backend.add();
    std::ofstream(after.backend.directory() + "/a.txt") << "new";
    pass(before, after);
    after.client_goes_when = [](const std::string& text) {
        return text.find("notifications/resources/updated") != std::string::npos;
    };
    const auto heard = after.stream(id);
    REQUIRE(heard.events.size() == 1);
    CHECK(heard.events[0]["params"]["uri"] == kPassedFile);
    CHECK(after.in_session(id, "resources/unsubscribe", file).json["result"] == json::object());
}

TEST_CASE("client sessions that passed count for their principal", "[mcp][passing]") {
    McpServer before;
    const std::string oldest = before.begin("2025-11-25", bearer(kBobToken));
    for (std::size_t i = 1; i < kPrincipalClientSessionsMax; ++i) {
        (void)before.begin("2025-11-25", bearer(kBobToken));
    }
    McpServer after;
    pass(before, after);
    const auto ping = [&](const std::string& id) {
        return after.in_session(id, "ping", json::object(), bearer(kBobToken)).status;
    };
    const std::string one_more = after.begin("2025-11-25", bearer(kBobToken));
    CHECK(ping(oldest) == 404);
    CHECK(ping(one_more) == 200);
}

TEST_CASE("a task and its life go on in another program", "[mcp][passing]") {
    Tasks tasks;
    tasks.go_on(read_passed_clients(to_json(example())).value().tasks);
    REQUIRE(tasks.find("alice", "tsk_1", kMade) != nullptr);
    CHECK(tasks.find("alice", "tsk_1", kMade)->place.note == "a note");
    CHECK(tasks.find("bob", "tsk_1", kMade) == nullptr);
    CHECK(tasks.find("alice", "tsk_2", kMade) == nullptr);
    CHECK(tasks.find("alice", "tsk_1", kMade + kTaskLife) == nullptr);
}

TEST_CASE("what one program sealed another opens with its key alone", "[mcp][passing]") {
    StateSeal before;
    CHECK(before.key().empty());
    const std::string sealed = before.seal("subject", {{"a", 1}}, kMade).value();
    StateSeal after;
    CHECK(after.open(sealed, "subject", kMade).has_error());
    REQUIRE(after.use_key(before.key()).has_value());
    CHECK(after.open(sealed, "subject", kMade).value() == json{{"a", 1}});
    CHECK(after.open(sealed, "another", kMade).has_error());
    const Task::Time too_late = kMade + kRequestStateLife + std::chrono::milliseconds(1);
    CHECK(after.open(sealed, "subject", too_late).has_error());
    StateSeal other;
    REQUIRE(other.seal("subject", {{"a", 1}}, kMade).has_value());
    CHECK(other.open(sealed, "subject", kMade).has_error());
}

}  // namespace
}  // namespace cellkeep::mcp::test
