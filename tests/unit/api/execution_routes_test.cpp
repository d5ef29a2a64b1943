// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/execution_book.hpp"
#include "tests/unit/api/agent_api.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <vector>

namespace cellkeep::api::test {
namespace {

TEST_CASE("an execution is run and answered whole", "[agent][executions]") {
    Api api;
    const auto session = api.backend.add();
    const auto answer =
        api.ask("POST", kExecutions, R"({"code":"1","stdin":"x","timeout_ms":5,"outputs":true})");
    CHECK(answer.status == 200);
    CHECK(answer.json["status"] == "ok");
    CHECK(answer.json["stdout"] == "out");
    CHECK(answer.json["outputs"].size() == 1);
    REQUIRE(session->requests.size() == 1);
    CHECK(session->requests[0].code == "1");
    CHECK_FALSE(api.ask("POST", kExecutions, R"({"code":"1"})").json.contains("outputs"));
}

TEST_CASE("a bad execution runs nothing", "[agent][executions]") {
    Api api;
    const auto session = api.backend.add();
    CHECK(api.ask("POST", kExecutions, "").status == 400);
    CHECK(api.ask("POST", kExecutions, "{").status == 400);
    CHECK(api.ask("POST", kExecutions, "{}").status == 422);
    CHECK(api.ask("POST", kExecutions, R"({"code":1})").json["errors"][0]["pointer"] == "/code");
    CHECK(api.ask("POST", kExecutions, R"({"code":"","language":"sql"})").status == 422);
    CHECK(
        api.ask("POST", kExecutions, R"({"code":""})", {{"Content-Type", "text/plain"}}).status ==
        415);
    CHECK(session->requests.empty());
}

TEST_CASE("the form of an answer is what Accept prefers", "[agent][executions]") {
    Api api;
    const auto session = api.backend.add();
    const char* body = R"({"code":""})";
    const auto type_for = [&](const char* accept) {
        const auto answer = api.ask("POST", kExecutions, body, {{"Accept", accept}});
        CHECK(answer.status == 200);
        CHECK(answer.headers.get("Location").find("/v1/sessions/ses_1/executions/exe_") == 0);
        return std::string(answer.headers.get("Content-Type"));
    };
    CHECK(type_for("*/*") == "application/json");
    CHECK(type_for("text/html, application/json") == "application/json");
    CHECK(type_for("application/json, text/event-stream") == "application/json");
    CHECK(type_for("application/json;q=0.5, text/event-stream") == "text/event-stream");
    CHECK(
        type_for("text/event-stream;q=0.2, application/x-ndjson;q=0.3") == "application/x-ndjson");
    const std::size_t ran = session->requests.size();
    for (const char* accept : {"text/html", "text/event-stream;q=0", "application/json;q=0", "x"}) {
        CAPTURE(accept);
        CHECK(api.ask("POST", kExecutions, body, {{"Accept", accept}}).status == 406);
    }
    CHECK(api.ask("POST", "/v1/executions", body, {{"Accept", "text/html"}}).status == 406);
    CHECK(session->requests.size() == ran);
}

TEST_CASE("server-sent events have ids and end with the whole answer", "[agent][executions]") {
    Api api;
    const auto session = api.backend.add();
    session->finishes = false;
    api.meanwhile = [&] {
        const auto execution = session->executions.at(0);
        execution->add_event("stdout", protocol::TextPieces(R"({"text":"a\nb"})"));
        execution->finish(session->answer_of(*execution));
    };
    const auto answer =
        api.ask("POST", kExecutions, R"({"code":""})", {{"Accept", "text/event-stream"}});
    CHECK(answer.whole);
    CHECK(answer.text.find("id: 1\nevent: started\ndata: {\"seq\":1,\"type\":\"started\",") == 0);
    CHECK(
        answer.text.find("\n\nid: 2\nevent: stdout\ndata: "
                         "{\"seq\":2,\"type\":\"stdout\",\"text\":\"a\\nb\"}\n\n") !=
        std::string::npos);
    const std::size_t last = answer.text.find("id: 3\nevent: finished\ndata: ");
    REQUIRE(last != std::string::npos);
    const auto data = nlohmann::json::parse(answer.text.substr(answer.text.find('{', last)));
    CHECK(data["execution"]["status"] == "ok");
    CHECK(data["execution"]["phase"] == "finished");
}

TEST_CASE("lines of JSON, from any event on, also later", "[agent][executions]") {
    Api api;
    api.backend.add();
    CHECK(api.ask("POST", kExecutions, R"({"code":""})").status == 200);
    const std::string events = "/v1/sessions/ses_1/executions/exe_1/events";
    const auto lines = [&](const std::string& target,
                           const std::vector<std::pair<std::string, std::string>>& headers) {
        auto all = headers;
        all.emplace_back("Accept", "application/x-ndjson");
        std::vector<std::string> types;
        std::string text = api.ask("GET", target, "", all).text;
        for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
            types.push_back(nlohmann::json::parse(text.substr(0, end))["type"]);
            text.erase(0, end + 1);
        }
        CHECK(text.empty());
        return types;
    };
    using Types = std::vector<std::string>;
    CHECK(lines(events, {}) == Types{"started", "stdout", "finished"});
    CHECK(lines(events, {{"Last-Event-ID", "1"}}) == Types{"stdout", "finished"});
    CHECK(lines(events + "?after=2", {{"Last-Event-ID", "1"}}) == Types{"finished"});
    CHECK(lines(events + "?after=1", {{"Last-Event-ID", "2"}}) == Types{"finished"});
    CHECK(api.ask("GET", events + "?after=1", "", {{"Last-Event-ID", "x"}}).status == 400);
    CHECK(api.ask("GET", events + "?after=3").status == 204);
    CHECK(api.ask("GET", events + "?after=-1").status == 400);
    CHECK(api.ask("GET", events + "?after=x").status == 400);
    CHECK(api.ask("GET", events, "", {{"Last-Event-ID", "1 "}}).status == 400);
    CHECK(api.ask("GET", events, "", {{"Accept", "application/json"}}).status == 406);
    CHECK(api.ask("GET", "/v1/sessions/ses_1/executions/exe_9/events").status == 404);
}

TEST_CASE(
    "a client that prefers not to wait gets the address of the answer", "[agent][executions]") {
    Api api;
    const auto session = api.backend.add();
    session->finishes = false;
    const auto answer = api.ask(
        "POST", kExecutions, R"({"code":"","reasoning":"why"})", {{"Prefer", "respond-async"}});
    CHECK(answer.status == 202);
    CHECK(answer.headers.get("Preference-Applied") == "respond-async");
    const std::string location(answer.headers.get("Location"));
    CHECK(location == "/v1/sessions/ses_1/executions/exe_1");
    CHECK(answer.json["phase"] == "running");
    CHECK(answer.json["status"].is_null());
    CHECK(answer.json["reasoning"] == "why");
    CHECK(api.ask("GET", location).json["phase"] == "running");
    session->executions.at(0)->finish(session->answer_of(*session->executions.at(0)));
    CHECK(api.ask("GET", location).json["status"] == "ok");
}

TEST_CASE("a client that goes stops the run only if it asked for that", "[agent][executions]") {
    Api api;
    const auto session = api.backend.add();
    session->finishes = false;
    const auto* const accept = GENERATE("application/json", "text/event-stream");
    const auto go_away = [&](const char* body) {
        api.client_goes = true;
        // An unwatched client waits for the end. A watched one is seen to go before it.
        api.meanwhile = [&] {
            (void)api.backend.io.poll();
            const auto execution = session->executions.back();
            execution->finish(session->answer_of(*execution));
        };
        (void)api.ask("POST", kExecutions, body, {{"Accept", accept}});
    };
    go_away(R"({"code":"","on_disconnect":"interrupt"})");
    CHECK(session->interrupts == 1);
    go_away(R"({"code":"","on_disconnect":"continue"})");
    go_away(R"({"code":""})");
    CHECK(session->interrupts == 1);
    CHECK(api.ask("POST", kExecutions, R"({"code":"","on_disconnect":"x"})").status == 422);
}

TEST_CASE("a run whose answer cannot even begin is interrupted too", "[agent][executions]") {
    Api api;
    const auto session = api.backend.add();
    session->finishes = false;
    api.head_fails = true;
    (void)api.ask(
        "POST",
        kExecutions,
        R"({"code":"","on_disconnect":"interrupt"})",
        {{"Accept", "text/event-stream"}});
    CHECK(session->interrupts == 1);
}

TEST_CASE("a repeated request goes on behind the last event it had", "[agent][executions]") {
    Api api;
    const auto session = api.backend.add();
    const auto post = [&](const char* last) {
        return api.ask(
            "POST",
            kExecutions,
            R"({"code":"","idempotency_key":"k"})",
            {{"Accept", "text/event-stream"}, {"Last-Event-ID", last}});
    };
    const auto all = post("1");  // there was none before
    CHECK(all.text.find("id: 1\n") == 0);
    session->repeats = true;
    const auto rest = post("1");
    CHECK(rest.text.find("id: 2\n") == 0);
    CHECK(rest.text.find("event: finished") != std::string::npos);
    CHECK(session->executions.size() == 1);
    CHECK(post("x").status == 400);
}

TEST_CASE("a key whose answer is forgotten is gone", "[agent][executions]") {
    Api api;
    const auto session = api.backend.add();
    session->failure = session::forgotten_answer("exe_7");
    const auto answer = api.ask("POST", kExecutions, R"({"code":"","idempotency_key":"k"})");
    CHECK(answer.status == 410);
    CHECK(answer.json["type"] == "/problems/answer-forgotten");
    CHECK(answer.json["detail"].get<std::string>().find("exe_7") != std::string::npos);
}

TEST_CASE("one execution is interrupted, and a finished one is not", "[agent][executions]") {
    Api api;
    const auto session = api.backend.add();
    session->finishes = false;
    (void)api.ask("POST", kExecutions, R"({"code":""})", {{"Prefer", "respond-async"}});
    const std::string path = "/v1/sessions/ses_1/executions/exe_1/interrupt";
    CHECK(api.ask("POST", path).status == 204);
    CHECK(session->interrupts == 1);
    session->executions.at(0)->finish(session->answer_of(*session->executions.at(0)));
    const auto late = api.ask("POST", path);
    CHECK(late.status == 409);
    CHECK(late.json["type"] == "/problems/execution-finished");
    CHECK(api.ask("POST", "/v1/sessions/ses_1/executions/exe_2/interrupt").status == 404);
}

TEST_CASE("executions are listed page by page", "[agent][executions]") {
    Api api;
    api.backend.add();
    for (int i = 0; i < 3; ++i) {
        (void)api.ask("POST", kExecutions, R"({"code":""})");
    }
    const std::string path = kExecutions;
    const auto first = api.ask("GET", path + "?limit=2");
    CHECK(first.json["executions"].size() == 2);
    CHECK(first.json["next"] == "exe_2");
    const auto rest = api.ask("GET", path + "?limit=2&after=exe_2");
    CHECK(rest.json["executions"][0]["id"] == "exe_3");
    CHECK(rest.json["next"].is_null());
    CHECK(api.ask("GET", path + "?limit=1000").status == 200);  // kPageExecutionsMax
    CHECK(api.ask("GET", path + "?limit=1001").status == 400);
    CHECK(api.ask("GET", path + "?limit=0").status == 400);
    CHECK(api.ask("GET", path + "?after=exe_9").json["type"] == "/problems/unknown-cursor");
}

TEST_CASE("a session that cannot run says why", "[agent][executions]") {
    Api api;
    const auto session = api.backend.add();
    session->failure = Error(ErrorCode::kConflict, "the kernel is dead");
    CHECK(api.ask("POST", kExecutions, R"({"code":""})").status == 409);
    session->failure = Error(ErrorCode::kLimitExceeded, "queue");
    CHECK(api.ask("POST", kExecutions, R"({"code":""})").status == 429);
}

TEST_CASE("a finished execution is found by its id", "[agent][executions]") {
    Api api;
    api.backend.add();
    CHECK(api.ask("POST", kExecutions, R"({"code":""})").status == 200);
    CHECK(api.ask("GET", "/v1/sessions/ses_1/executions/exe_1").json["id"] == "exe_1");
    CHECK(api.ask("GET", "/v1/sessions/ses_1/executions/exe_1?outputs=true")
              .json.contains("outputs"));
    const auto answer = api.ask("GET", "/v1/sessions/ses_1/executions/exe_2");
    CHECK(answer.status == 404);
    CHECK(answer.json["type"] == "/problems/unknown-execution");
}

TEST_CASE("a one-shot execution leaves no session, whatever happens", "[agent][executions]") {
    Api api;
    CHECK(api.ask("POST", "/v1/executions", R"({"code":"1"})").json["session_id"] == "ses_1");
    CHECK(api.backend.removed == 1);
    api.backend.session_failure = Error(ErrorCode::kConflict, "died");
    CHECK(api.ask("POST", "/v1/executions", R"({"code":"1"})").status == 409);
    CHECK(api.backend.removed == 2);
    CHECK(api.backend.sessions.empty());
    CHECK(api.ask("POST", "/v1/executions", R"({"code":1})").status == 422);
    CHECK(api.backend.removed == 2);
}

}  // namespace
}  // namespace cellkeep::api::test
