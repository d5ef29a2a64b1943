// SPDX-License-Identifier: Apache-2.0
#include "protocol/limits.hpp"
#include "tests/unit/jupyter/rest_fixture.hpp"

#include <catch2/catch.hpp>

namespace cellkeep::jupyter::test {
namespace {

constexpr const char* kNotebook =
    R"({"path":"a/x.ipynb","name":"x","type":"notebook","kernel":{"name":"python3"}})";

std::string make(RestFixture& rest, const std::string& body = kNotebook) {
    const auto answer = rest.ask("POST", "/api/sessions", body);
    REQUIRE(answer.status == 201);
    return "/api/sessions/" + answer.json["id"].get<std::string>();
}

TEST_CASE("a session is a document and a fresh kernel", "[rest][sessions]") {
    RestFixture rest;
    const auto answer = rest.ask("POST", "/api/sessions", kNotebook);
    CHECK(answer.status == 201);
    CHECK(is_uuid(answer.json["id"].get<std::string>()));
    CHECK(
        answer.headers.get("Location") == "/api/sessions/" + answer.json["id"].get<std::string>());
    CHECK(answer.json["path"] == "a/x.ipynb");
    CHECK(answer.json["name"] == "x");
    CHECK(answer.json["type"] == "notebook");
    CHECK(answer.json["notebook"]["path"] == "a/x.ipynb");
    CHECK(answer.json["notebook"]["name"] == "x");
    CHECK(answer.json["kernel"]["name"] == "python3");
    CHECK(answer.json["kernel"]["execution_state"] == "idle");
    CHECK(rest.backend.asked.at(0).working_directory == "a");
    CHECK(rest.ask("GET", "/api/kernels").json[0] == answer.json["kernel"]);
    CHECK(rest.ask("GET", "/api/sessions").json[0] == answer.json);
    CHECK(
        rest.ask("GET", "/api/sessions/" + answer.json["id"].get<std::string>()).json ==
        answer.json);
}

TEST_CASE("a document that has a session gets it again", "[rest][sessions]") {
    RestFixture rest;
    const std::string path = make(rest);
    CHECK(make(rest) == path);
    CHECK(make(rest, R"({"path":"a/x.ipynb","type":"console","kernel":{"name":"ir"}})") == path);
    CHECK(rest.backend.asked.size() == 1);
    CHECK(make(rest, R"({"path":"b","type":"notebook"})") != path);
    CHECK(rest.ask("GET", "/api/sessions").json.size() == 2);
}

TEST_CASE("two windows that open a document at once share its session", "[rest][sessions]") {
    RestFixture rest;
    rest.backend.gate = std::make_shared<Completion<bool>>(rest.io);
    const auto first = rest.start("POST", "/api/sessions", kNotebook);
    const auto second = rest.start("POST", "/api/sessions", kNotebook);
    const auto other = rest.start("POST", "/api/sessions", R"({"path":"b","type":"notebook"})");
    CHECK(first->status == 0);
    CHECK(second->status == 0);
    rest.backend.gate->set(true);
    rest.run();
    CHECK(first->status == 201);
    CHECK(second->status == 201);
    CHECK(first->json == second->json);
    CHECK(other->json["id"] != first->json["id"]);
    CHECK(rest.backend.asked.size() == 2);
}

TEST_CASE("the second window tries itself when the first one's kernel fails", "[rest][sessions]") {
    RestFixture rest;
    rest.backend.gate = std::make_shared<Completion<bool>>(rest.io);
    rest.backend.failure = Error(ErrorCode::kLimitExceeded, "full");
    const auto first = rest.start("POST", "/api/sessions", kNotebook);
    const auto second = rest.start("POST", "/api/sessions", kNotebook);
    rest.backend.gate->set(true);
    rest.run();
    CHECK(first->status == 403);
    CHECK(second->status == 403);
    CHECK(rest.backend.asked.size() == 2);
    CHECK(rest.ask("GET", "/api/sessions").json.empty());
}

TEST_CASE("a session may use a kernel that runs", "[rest][sessions]") {
    RestFixture rest;
    rest.add_kernel();
    const std::string body =
        R"({"path":"c","type":"console","kernel":{"id":")" + std::string(kSomeUuid) + R"("}})";
    const auto answer = rest.ask("POST", "/api/sessions", body);
    CHECK(answer.status == 201);
    CHECK(answer.json["kernel"]["id"] == kSomeUuid);
    CHECK_FALSE(answer.json.contains("notebook"));
    CHECK(answer.json["name"] == "");
    CHECK(rest.backend.asked.empty());
    // A kernel that is gone is replaced.
    const std::string gone =
        R"({"path":"d","type":"console","kernel":{"id":")" + std::string(kOtherUuid) + R"("}})";
    const auto fresh = rest.ask("POST", "/api/sessions", gone);
    CHECK(fresh.status == 201);
    CHECK(fresh.json["kernel"]["id"] != kOtherUuid);
    CHECK(rest.backend.asked.size() == 1);
}

TEST_CASE("the first version of the interface is still understood", "[rest][sessions]") {
    RestFixture rest;
    const auto answer =
        rest.ask("POST", "/api/sessions", R"({"notebook":{"path":"old.ipynb"},"kernel":{}})");
    CHECK(answer.status == 201);
    CHECK(answer.json["path"] == "old.ipynb");
    CHECK(answer.json["type"] == "notebook");
}

TEST_CASE("only a notebook's path is one of a directory", "[rest][sessions]") {
    const auto [path, type, directory] = GENERATE(table<std::string, std::string, std::string>({
        {"a/b/x.ipynb", "notebook", "a/b"},
        {"x.ipynb", "notebook", ""},
        {"/abs/x.ipynb", "notebook", ""},
        {"../../x.ipynb", "notebook", ""},
        {"a/console-1", "console", ""},
        {"01234567-89ab-4def-8123-456789abcdef", "notebook", ""},
    }));
    RestFixture rest;
    const nlohmann::json body = {{"path", path}, {"type", type}};
    CHECK(rest.ask("POST", "/api/sessions", body.dump()).status == 201);
    CHECK(rest.backend.asked.at(0).working_directory == directory);
}

TEST_CASE("a bad session is refused and starts nothing", "[rest][sessions]") {
    RestFixture rest;
    for (const char* body :
         {"",
          "{",
          "[]",
          "{}",
          R"({"path":"x"})",
          R"({"type":"notebook"})",
          R"({"path":null,"type":"notebook"})",
          R"({"path":1,"type":"notebook"})",
          R"({"path":"x","type":1})",
          R"({"path":"x","type":"notebook","name":1})",
          R"({"path":"x","type":"notebook","kernel":1})",
          R"({"path":"x","type":"notebook","kernel":{"id":1}})",
          R"({"path":"x","type":"notebook","kernel":{"name":[]}})",
          R"({"path":"x","type":"notebook","kernel":{"env":{"KERNEL_A":1}}})",
          R"({"notebook":1})"}) {
        CAPTURE(body);
        const auto answer = rest.ask("POST", "/api/sessions", body);
        CHECK(answer.status == 400);
        CHECK(answer.json["message"].is_string());
    }
    const auto unknown = rest.ask(
        "POST", "/api/sessions", R"({"path":"x","type":"notebook","kernel":{"name":"ir"}})");
    CHECK(unknown.status == 501);
    CHECK(unknown.json["short_message"] == "ir not found");
    CHECK(rest.backend.asked.empty());
    CHECK(rest.ask("GET", "/api/sessions").json.empty());
}

TEST_CASE("a renamed document keeps its kernel", "[rest][sessions]") {
    RestFixture rest;
    const std::string session = make(rest);
    const auto before = rest.ask("GET", session).json;
    const auto answer = rest.ask("PATCH", session, R"({"path":"b/y.ipynb","name":"y"})");
    CHECK(answer.status == 200);
    CHECK(answer.json["path"] == "b/y.ipynb");
    CHECK(answer.json["notebook"]["name"] == "y");
    CHECK(answer.json["kernel"] == before["kernel"]);
    CHECK(rest.ask("PATCH", session, R"({"type":"file"})").json["type"] == "file");
    CHECK(rest.ask("PATCH", session, R"({"kernel":{"id":null,"name":null}})").status == 200);
    CHECK(rest.ask("PATCH", session, "{}").json["path"] == "b/y.ipynb");
    CHECK(rest.backend.sessions.size() == 1);
}

TEST_CASE("another kernel replaces the one before", "[rest][sessions]") {
    RestFixture rest;
    const std::string session = make(rest);
    const std::string first = rest.ask("GET", session).json["kernel"]["id"];
    const auto named = rest.ask("PATCH", session, R"({"kernel":{"name":"sql"}})");
    CHECK(named.status == 200);
    CHECK(named.json["kernel"]["name"] == "sql");
    CHECK(rest.backend.find(first) == nullptr);
    rest.add_kernel();
    const std::string by_id = R"({"kernel":{"id":")" + std::string(kSomeUuid) + R"("}})";
    CHECK(rest.ask("PATCH", session, by_id).json["kernel"]["id"] == kSomeUuid);
    CHECK(rest.ask("PATCH", session, by_id).status == 200);
    CHECK(rest.backend.sessions.size() == 1);
}

TEST_CASE("a kernel that another document uses is not ended by a change", "[rest][sessions]") {
    RestFixture rest;
    rest.add_kernel();
    const std::string kernel = R"("kernel":{"id":")" + std::string(kSomeUuid) + R"("}})";
    const std::string one = make(rest, R"({"path":"1","type":"notebook",)" + kernel);
    const std::string two = make(rest, R"({"path":"2","type":"console",)" + kernel);
    CHECK(rest.ask("PATCH", one, R"({"kernel":{"name":"python3"}})").status == 200);
    CHECK(rest.ask("GET", two).json["kernel"]["id"] == kSomeUuid);
}

TEST_CASE("a bad change changes nothing", "[rest][sessions]") {
    RestFixture rest;
    const std::string session = make(rest);
    const auto before = rest.ask("GET", session).json;
    for (const char* body :
         {"",
          "{",
          "[]",
          R"({"path":1})",
          R"({"name":{}})",
          R"({"kernel":1})",
          R"({"kernel":{"id":1}})",
          R"({"kernel":{"name":1}})",
          R"({"kernel":{"id":"x"}})",
          R"({"kernel":{"id":"76543210-89ab-4def-8123-456789abcdef"}})"}) {
        CAPTURE(body);
        CHECK(rest.ask("PATCH", session, body).status == 400);
    }
    CHECK(rest.ask("PATCH", session, R"({"kernel":{"name":"ir"}})").status == 501);
    rest.backend.failure = Error(ErrorCode::kLimitExceeded, "full");
    CHECK(rest.ask("PATCH", session, R"({"path":"z","kernel":{"name":"sql"}})").status == 403);
    CHECK(rest.ask("GET", session).json == before);
}

TEST_CASE(
    "a session that ended while its new kernel started ends that kernel, too", "[rest][sessions]") {
    RestFixture rest;
    const std::string session = make(rest);
    rest.backend.gate = std::make_shared<Completion<bool>>(rest.io);
    const auto patch = rest.start("PATCH", session, R"({"kernel":{"name":"sql"}})");
    CHECK(rest.ask("DELETE", session).status == 204);
    rest.backend.gate->set(true);
    rest.run();
    CHECK(patch->status == 404);
    CHECK(rest.backend.sessions.empty());
}

TEST_CASE("a session ends with its kernel, and its kernel with it", "[rest][sessions]") {
    RestFixture rest;
    std::string session = make(rest);
    CHECK(rest.ask("DELETE", session).status == 204);
    CHECK(rest.backend.sessions.empty());
    CHECK(rest.ask("DELETE", session).status == 404);
    CHECK(rest.ask("GET", session).status == 404);
    CHECK(rest.ask("PATCH", session, "{}").status == 404);

    session = make(rest);
    rest.backend.sessions.clear();
    CHECK(rest.ask("GET", session).status == 404);
    CHECK(rest.ask("DELETE", session).status == 410);
    session = make(rest);
    rest.backend.sessions.clear();
    CHECK(rest.ask("GET", "/api/sessions").json.empty());
    CHECK(rest.ask("DELETE", session).status == 404);
    for (const char* id : {"x", "ses_1", kOtherUuid}) {
        CHECK(rest.ask("GET", std::string("/api/sessions/") + id).status == 404);
    }
}

TEST_CASE("a principal that is no administrator sees only its own sessions", "[rest][sessions]") {
    RestFixture rest;
    rest.add_kernel(kSomeUuid, "admin");
    const std::string session = make(rest);
    rest.principal = {"bob", http::Role::kAgent};
    CHECK(rest.ask("GET", "/api/sessions").json.empty());
    CHECK(rest.ask("GET", session).status == 404);
    CHECK(rest.ask("PATCH", session, R"({"name":"mine"})").status == 404);
    CHECK(rest.ask("DELETE", session).status == 404);
    const std::string own = make(rest);  // the same path is another document of his
    CHECK(own != session);
    const std::string steal = R"({"kernel":{"id":")" + std::string(kSomeUuid) + R"("}})";
    CHECK(rest.ask("PATCH", own, steal).status == 400);
}

TEST_CASE("at most kJupyterSessionsMax documents have a kernel", "[rest][sessions]") {
    const std::string rest_of_body =
        R"(","type":"console","kernel":{"id":")" + std::string(kSomeUuid) + R"("}})";
    RestSessionTable table;
    for (std::size_t i = 0; i < limits::kJupyterSessionsMax; ++i) {
        table.add({std::to_string(i), "p" + std::to_string(i), "", "console", kSomeUuid, "admin"});
    }
    CHECK(table.all().size() == limits::kJupyterSessionsMax);
    CHECK(table.find("7")->path == "p7");
    CHECK(table.find_path("p7", "bob") == nullptr);
    table.remove("7");
    CHECK(table.find("7") == nullptr);
    // The interface refuses the next one; it is asked for fewer here, because each costs a request.
    RestConfig few;
    few.sessions_max = 3;
    RestFixture small(std::move(few));
    small.add_kernel();
    for (const char* path : {"1", "2", "3"}) {
        (void)make(small, R"({"path":")" + std::string(path) + rest_of_body);
    }
    const auto refused = small.ask("POST", "/api/sessions", R"({"path":"4)" + rest_of_body);
    CHECK(refused.status == 403);
    CHECK(refused.json["reason"] == "Resource Limit");
    CHECK(small.ask("POST", "/api/sessions", R"({"path":"3)" + rest_of_body).status == 201);
}

}  // namespace
}  // namespace cellkeep::jupyter::test
