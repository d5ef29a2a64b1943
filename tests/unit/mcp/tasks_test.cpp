// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/tasks/tasks.hpp"

#include "kernel-manager/mcp/limits.hpp"
#include "tests/unit/mcp/waiting_run.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <string>

namespace cellkeep::mcp::test {
namespace {

const json kTakesTasks = {{"extensions", {{kTasksExtension, json::object()}}}};
const Task::Time kNow = std::chrono::system_clock::now();

json run_of(const char* session) {
    return {
        {"name", "run_code"}, {"arguments", {{"code", "1"}, {"session", session}, {"wait_ms", 0}}}};
}

/// The response to a request of a client that takes tasks.
json ask(
    McpServer& server,
    const std::string& method,
    json params,
    const Fields& fields = {},
    const json& declared = kTakesTasks) {
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = declared;
    return server.call(method, std::move(params), fields).message();
}

json get(McpServer& server, const json& id, const json& declared = kTakesTasks) {
    return ask(server, "tasks/get", {{"taskId", id}}, {}, declared).at("result");
}

/// A session whose run goes on, and the id of the task that stands for it.
struct LongRun {
    explicit LongRun(const json& declared = kTakesTasks) {
        session->finishes = false;
        created = ask(server, "tools/call", run_of("ses_1"), {}, declared).at("result");
    }
    void finish() const { execution()->finish(session->answer_of(*execution())); }
    std::shared_ptr<session::Execution> execution() const { return session->executions.back(); }
    json id() const { return created.at("taskId"); }

    McpServer server;
    std::shared_ptr<FakeSession> session = server.backend.add();
    json created;
};

const Task* add(Tasks& tasks, const std::string& principal, Task::Time now = kNow) {
    return tasks.add(principal, {"work", "ses_1", State::kKept, "", false}, "exe_1", now);
}

TEST_CASE("a task is its principal's and ends with kTaskLife", "[mcp][tasks]") {
    Tasks tasks;
    const Task* made = add(tasks, "alice");
    REQUIRE(made != nullptr);
    const std::string id = made->id;
    CHECK(id.starts_with("tsk_"));
    CHECK(id.size() == 36);
    REQUIRE(tasks.find("alice", id, kNow) != nullptr);
    CHECK(tasks.find("alice", id, kNow)->execution_id == "exe_1");
    CHECK(tasks.find("bob", id, kNow) == nullptr);
    for (const std::string& other : {std::string(), std::string("tsk_"), id + "0", "x" + id}) {
        CHECK(tasks.find("alice", other, kNow) == nullptr);
    }
    const auto last = kNow + kTaskLife;
    CHECK(tasks.find("alice", id, last - std::chrono::milliseconds(1)) != nullptr);
    CHECK(tasks.find("alice", id, last) == nullptr);
    CHECK(tasks.size() == 0);
}

TEST_CASE("a principal has kPrincipalTasksMax tasks", "[mcp][tasks]") {
    Tasks tasks;
    for (std::size_t i = 0; i < kPrincipalTasksMax; ++i) {
        CHECK(add(tasks, "alice") != nullptr);
    }
    CHECK(add(tasks, "alice") == nullptr);
    CHECK(add(tasks, "bob") != nullptr);
    CHECK(tasks.size() == kPrincipalTasksMax + 1);
    // The old ones make room.
    CHECK(add(tasks, "alice", kNow + kTaskLife) != nullptr);
    CHECK(tasks.size() == 1);
}

TEST_CASE("there are kTasksMax tasks", "[mcp][tasks]") {
    Tasks tasks;
    for (std::size_t i = 0; i < kTasksMax; ++i) {
        CHECK(add(tasks, "p" + std::to_string(i / kPrincipalTasksMax)) != nullptr);
    }
    CHECK(add(tasks, "another") == nullptr);
    CHECK(tasks.size() == kTasksMax);
}

TEST_CASE("a client that takes tasks gets one for a run that goes on", "[mcp][tasks]") {
    LongRun run;
    CHECK(run.created["resultType"] == "task");
    CHECK(run.created["status"] == "working");
    CHECK(run.created["ttlMs"] == std::chrono::milliseconds(kTaskLife).count());
    CHECK(run.created["pollIntervalMs"] == kTaskPollInterval.count());
    CHECK_FALSE(run.created.contains("content"));
    const json working = get(run.server, run.id());
    CHECK(working["resultType"] == "complete");
    CHECK(working["status"] == "working");
    CHECK(working["createdAt"] == run.created["createdAt"]);
    CHECK_FALSE(working.contains("result"));
    run.finish();
    for (int i = 0; i < 2; ++i) {  // also when it is read again
        const json done = get(run.server, run.id());
        CHECK(done["status"] == "completed");
        CHECK(done["result"]["isError"] == false);
        CHECK(done["result"]["structuredContent"]["stdout"]["text"] == "out");
        CHECK(done["result"]["structuredContent"]["state"] == "kept");
    }
    CHECK(run.session->interrupts == 0);
}

TEST_CASE("a run that ends in time is no task", "[mcp][tasks]") {
    McpServer server;
    const json done = ask(server, "tools/call", run_of("work"))["result"];
    CHECK(done["resultType"] == "complete");
    CHECK(done["structuredContent"]["status"] == "ok");
    const json told = ask(server, "server/discover", json::object())["result"];
    CHECK(told["capabilities"]["extensions"] == json{{kTasksExtension, json::object()}});
}

TEST_CASE("a client that declares no tasks gets none, and may not ask for any", "[mcp][tasks]") {
    for (const json& declared :
         {json::object(),
          json{{"extensions", json::object()}},
          json{{"extensions", {{kTasksExtension, true}}}},
          json{{"extensions", json::array({kTasksExtension})}},
          json{{"tasks", json::object()}}}) {
        CAPTURE(declared.dump());
        const LongRun other(declared);
        CHECK(other.created["resultType"] == "complete");
        CHECK(other.created["structuredContent"]["status"] == "running");
        LongRun run;
        for (const char* method : {"tasks/get", "tasks/update", "tasks/cancel"}) {
            const json params = {{"taskId", run.id()}, {"inputResponses", json::object()}};
            const json refused = ask(run.server, method, params, {}, declared)["error"];
            CHECK(refused["code"] == -32021);
            CHECK(refused["data"]["requiredCapabilities"]["extensions"].contains(kTasksExtension));
            CHECK_FALSE(ask(run.server, method, params).contains("error"));
        }
        const json listens = {{"notifications", {{"taskIds", {run.id()}}}}};
        CHECK(
            ask(run.server, "subscriptions/listen", listens, {}, declared)["error"]["code"] ==
            -32021);
    }
}

TEST_CASE("client sessions of before know no tasks", "[mcp][tasks]") {
    McpServer server;
    const auto session = server.backend.add();
    session->finishes = false;
    const std::string id = server.begin("2025-11-25", {}, kTakesTasks);
    const json run = server.in_session(id, "tools/call", run_of("ses_1")).message()["result"];
    CHECK(run["structuredContent"]["status"] == "running");
    const json refused = server.in_session(id, "tasks/get", {{"taskId", "tsk_1"}}).message();
    CHECK(refused["error"]["code"] == -32601);
}

TEST_CASE("what is no task of the principal's is none", "[mcp][tasks]") {
    LongRun run;
    for (const char* method : {"tasks/get", "tasks/update", "tasks/cancel"}) {
        CAPTURE(method);
        for (const json& id : {json("tsk_1"), json(5), json(nullptr)}) {
            const json params = {{"taskId", id}, {"inputResponses", json::object()}};
            CHECK(ask(run.server, method, params)["error"]["code"] == -32602);
        }
        const json params = {{"taskId", run.id()}, {"inputResponses", json::object()}};
        const json other = ask(run.server, method, params, bearer(kAliceToken));
        CHECK(other["error"]["code"] == -32602);
        // Its header names another one.
        const Fields header = {{"Mcp-Name", "tsk_1"}};
        CHECK(ask(run.server, method, params, header)["error"]["code"] == -32020);
    }
    CHECK(run.session->interrupts == 0);
    CHECK(get(run.server, run.id())["status"] == "working");
}

TEST_CASE("a task that is cancelled interrupts its run, once", "[mcp][tasks]") {
    LongRun run;
    for (int i = 0; i < 2; ++i) {
        const json answer = ask(run.server, "tasks/cancel", {{"taskId", run.id()}})["result"];
        CHECK(answer["resultType"] == "complete");
        CHECK(get(run.server, run.id())["status"] == "cancelled");
    }
    CHECK(run.session->interrupts >= 1);
    if (!run.execution()->result()) {
        run.finish();
    }
    CHECK(get(run.server, run.id())["status"] == "cancelled");
    // One that is over stays as it is.
    LongRun over;
    over.finish();
    (void)ask(over.server, "tasks/cancel", {{"taskId", over.id()}});
    CHECK(get(over.server, over.id())["status"] == "completed");
    CHECK(over.session->interrupts == 0);
}

TEST_CASE("a task whose session has gone is over, and says so", "[mcp][tasks]") {
    LongRun run;
    run.server.backend.sessions.clear();
    const json done = get(run.server, run.id());
    CHECK(done["status"] == "completed");
    CHECK(done["result"]["isError"] == true);
    CHECK(done["result"]["structuredContent"]["state"] == "lost");
}

TEST_CASE("at the bound of tasks a run is read on as without them", "[mcp][tasks]") {
    McpServer server;
    const auto session = server.backend.add();
    session->finishes = false;
    for (std::size_t i = 0; i < kPrincipalTasksMax; ++i) {
        const json result = ask(server, "tools/call", run_of("ses_1"))["result"];
        CHECK(result["resultType"] == "task");
    }
    const json result = ask(server, "tools/call", run_of("ses_1"))["result"];
    CHECK(result["resultType"] == "complete");
    CHECK(result["structuredContent"]["status"] == "running");
}

TEST_CASE("a task asks its client's person about a call that waits", "[mcp][tasks][approvals]") {
    const json declared = {
        {"extensions", {{kTasksExtension, json::object()}}}, {"elicitation", json::object()}};
    for (const char* decision : {"approve", "deny"}) {
        Waiting run;
        const json created =
            ask(run.server, "tools/call", run_of("ses_1"), {}, declared).at("result");
        const json id = created.at("taskId");
        run.call_tool();
        run.run_loop();
        const json asks = get(run.server, id, declared);
        CHECK(asks["status"] == "input_required");
        REQUIRE(asks["inputRequests"].size() == 1);
        CHECK(asks["inputRequests"].contains(run.tools->id));
        CHECK(asks["inputRequests"][run.tools->id]["method"] == "elicitation/create");
        // A client without forms is told that it waits.
        CHECK(get(run.server, id)["status"] == "working");
        CHECK(get(run.server, id).contains("statusMessage"));
        const auto update = [&](const json& responses, const json& as) {
            return ask(
                run.server,
                "tasks/update",
                {{"taskId", id}, {"inputResponses", responses}},
                {},
                as);
        };
        for (const json& wrong : {json(5), json::object(), json{{"action", "perhaps"}}}) {
            CHECK(update({{run.tools->id, wrong}}, declared)["error"]["code"] == -32602);
        }
        CHECK(update(json::array(), declared)["error"]["code"] == -32602);
        // What was not asked is ignored, and so is who is not asked.
        CHECK(update({{"apr_1", decide(decision)}}, declared).contains("result"));
        CHECK(update({{run.tools->id, {{"action", "cancel"}}}}, declared).contains("result"));
        CHECK(update({{run.tools->id, decide(decision)}}, kTakesTasks).contains("result"));
        CHECK(run.tools->words.empty());
        CHECK(update({{run.tools->id, decide(decision)}}, declared).contains("result"));
        run.run_loop();
        const std::string said = std::string(decision) == "approve" ? "approved" : "denied";
        CHECK(run.said() == Words{said + " by admin"});
        CHECK(get(run.server, id, declared)["status"] == "completed");
        CHECK(update({{run.tools->id, decide(decision)}}, declared).contains("result"));
        CHECK(run.said().size() == 1);
    }
}

}  // namespace
}  // namespace cellkeep::mcp::test
