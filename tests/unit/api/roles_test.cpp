// SPDX-License-Identifier: Apache-2.0
//
// What each role may do, on every operation of the OpenAPI document; what one principal can reach
// of another's.
#include "kernel-manager/api/openapi.hpp"
#include "kernel-manager/api/routes/routes.hpp"
#include "kernel-manager/store/store.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/unit/api/agent_api.hpp"

#include <catch2/catch.hpp>

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::api::test {
namespace {

struct Operation {
    std::string method;
    std::string path;  // as in the document
    nlohmann::json description;

    bool open() const { return description.value("security", nlohmann::json()).is_array(); }
    bool documents(const char* status) const { return description["responses"].contains(status); }
    bool names_something() const { return path.find('{') != std::string::npos; }
};

std::vector<Operation> operations() {
    std::vector<Operation> all;
    const auto document = nlohmann::json::parse(openapi_document());
    for (const auto& [path, methods] : document["paths"].items()) {
        for (const auto& [method, description] : methods.items()) {
            if (method == "parameters") {
                continue;
            }
            std::string name = method;
            for (char& c : name) {
                c = static_cast<char>(c - 'a' + 'A');
            }
            all.push_back({name, path, description});
        }
    }
    return all;
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at)) {
        text.replace(at, what.size(), with);
        at += with.size();
    }
    return text;
}

/// A session of alice with an execution and a file, and a one-shot execution of hers.
class Inhabited {
 public:
    explicit Inhabited(store::Store* store = nullptr) : api(store) {
        session::SessionOptions options;
        options.owner = "alice";
        session = api.backend.add(options);
        session->set_connection_file("/secret/place.json");
        const auto run = ask(kAliceToken, "POST", "/v1/sessions/ses_1/executions", kCode);
        REQUIRE(run.status == 200);
        in_session = run.json["id"];
        const auto once = ask(kAliceToken, "POST", "/v1/executions", kCode);
        REQUIRE(once.status == 200);
        alone = once.json["id"];
        REQUIRE(ask(kAliceToken, "PUT", "/v1/sessions/ses_1/files/a.txt", "text").status == 201);
        session->touched = 0;
    }

    Api::Answer ask(
        const std::string& token,
        const std::string& method,
        const std::string& target,
        const std::string& body = {}) {
        return api.ask(method, target, body, {{"Authorization", "Bearer " + token}});
    }
    /// The path with the ids of existing objects.
    std::string target_of(const std::string& path) const {
        const bool once = path.compare(0, 14, "/v1/executions") == 0;
        const std::string execution = once ? alone : in_session;
        const std::string with_port = replaced(path, "{port}", "8000");
        return replaced(
            replaced(replaced(with_port, "{id}", "ses_1"), "{exe}", execution), "{path}", "a.txt");
    }
    /// The path with ids that do not exist.
    static std::string absent_of(const std::string& path) {
        const std::string with_port = replaced(path, "{port}", "8000");
        return replaced(
            replaced(replaced(with_port, "{id}", "ses_0"), "{exe}", "exe_0"), "{path}", "a.txt");
    }

    static constexpr const char* kCode = R"({"code":"1"})";
    Api api;
    std::shared_ptr<FakeSession> session;
    std::string in_session;
    std::string alone;
};

TEST_CASE("the OpenAPI document has every route of the session API", "[agent][roles]") {
    FakeSessionService backend;
    History history(nullptr);
    const http::TokenAuth auth("t");
    preview::Previews previews(auth, {});
    Routes routes(backend, history, previews, "1");
    http::Router router;
    routes.add_to(router);
    std::set<std::string> described;
    for (const Operation& operation : operations()) {
        described.insert(operation.method + " " + operation.path);
    }
    for (const http::Route* route : router.routes()) {
        if (route->pattern.compare(0, 5, "/docs") == 0) {
            continue;  // the page that shows the document
        }
        CAPTURE(route->method, route->pattern);
        CHECK(described.count(route->method + " " + replaced(route->pattern, "...}", "}")) == 1);
    }
}

/// What a WebSocket's client sends may change something, although the handshake is a GET; and a
/// server inside may do anything for a GET.
bool is_socket(const std::string& path) {
    const bool passed_on = path.find("/ports/{port}/") != std::string::npos &&
                           path.find("/tokens") == std::string::npos;
    return path.ends_with("/ws") || passed_on;
}

TEST_CASE("every route but a GET changes something", "[agent][roles]") {
    FakeSessionService backend;
    History history(nullptr);
    const http::TokenAuth auth("t");
    preview::Previews previews(auth, {});
    Routes routes(backend, history, previews, "1");
    http::Router router;
    routes.add_to(router);
    for (const http::Route* route : router.routes()) {
        CAPTURE(route->method, route->pattern);
        const bool reads = route->access == http::Access::kRead;
        const bool open = route->access == http::Access::kOpen;
        CHECK((route->method == "GET" && !is_socket(route->pattern)) == (reads || open));
        const bool public_page =
            route->pattern == "/healthz" || route->pattern.compare(0, 5, "/docs") == 0;
        CHECK(open == public_page);
    }
}

TEST_CASE("each operation answers each role as the document says", "[agent][roles]") {
    for (const Operation& operation : operations()) {
        CAPTURE(operation.method, operation.path);
        const auto answer = [&operation](const std::string& token) {
            Inhabited world;
            return world.ask(
                token, operation.method, world.target_of(operation.path), Inhabited::kCode);
        };
        const auto is_refused = [&answer](const std::string& token) {
            const int status = answer(token).status;
            return status == 401 || status == 403;
        };
        CHECK(operation.documents("401") == !operation.open());
        CHECK((answer("wrong").status == 401) == !operation.open());
        CHECK_FALSE(is_refused("t"));
        CHECK_FALSE(is_refused(kAliceToken));
        if (operation.method == "GET" && !is_socket(operation.path)) {
            CHECK_FALSE(is_refused(kEveToken));
            CHECK(answer(kEveToken).status == answer("t").status);
            continue;
        }
        const auto refusal = answer(kEveToken);
        CHECK(refusal.status == 403);
        CHECK(refusal.headers.get("Content-Type") == "application/problem+json");
        CHECK(refusal.json["type"] == "/problems/read-only-role");
        CHECK(refusal.json["detail"].get<std::string>().find("token") != std::string::npos);
        CHECK(operation.documents("403"));
    }
}

TEST_CASE("what is another agent's is answered as what does not exist", "[agent][roles]") {
    for (const Operation& operation : operations()) {
        if (!operation.names_something()) {
            continue;
        }
        CAPTURE(operation.method, operation.path);
        Inhabited world;
        const std::string target = world.target_of(operation.path);
        const auto hers = world.ask(kBobToken, operation.method, target, Inhabited::kCode);
        const auto absent_answer = world.ask(
            kBobToken, operation.method, Inhabited::absent_of(operation.path), Inhabited::kCode);
        CHECK(hers.status == 404);
        CHECK(absent_answer.status == 404);
        std::string text = replaced(hers.text, "ses_1", "ses_0");
        text = replaced(replaced(text, world.in_session, "exe_0"), world.alone, "exe_0");
        CHECK(text == absent_answer.text);
        CHECK(hers.headers.get("Content-Type") == absent_answer.headers.get("Content-Type"));
        CHECK(world.session->touched == 0);
        CHECK(world.session->interrupts == 0);
        CHECK(world.session->restarts == 0);
        CHECK(world.session->requests.size() == 1);
        CHECK(world.session->updates.empty());
    }
}

TEST_CASE(
    "a listing shows an agent its own sessions, and an observer all sessions", "[agent][roles]") {
    Inhabited world;
    REQUIRE(world.ask(kBobToken, "POST", "/v1/sessions", "{}").status == 201);
    const auto owners = [&world](const std::string& token) {
        std::vector<std::string> all;
        const auto listing = world.ask(token, "GET", "/v1/sessions").json;
        for (const auto& one : listing["sessions"]) {
            all.push_back(one["owner"]);
        }
        return all;
    };
    CHECK(owners(kAliceToken) == std::vector<std::string>{"alice"});
    CHECK(owners(kBobToken) == std::vector<std::string>{"bob"});
    CHECK(owners(kEveToken) == std::vector<std::string>{"alice", "bob"});
    CHECK(owners("t") == std::vector<std::string>{"alice", "bob"});
}

TEST_CASE("a request of an observer keeps no session alive and finds no key", "[agent][roles]") {
    Inhabited world;
    for (const Operation& operation : operations()) {
        if (operation.method == "GET") {
            (void)world.ask(kEveToken, "GET", world.target_of(operation.path));
        }
    }
    CHECK(world.session->touched == 0);
    (void)world.ask(kAliceToken, "GET", "/v1/sessions/ses_1/files");
    CHECK(world.session->touched == 1);
    const char* path = "/v1/sessions/ses_1";
    CHECK(world.ask(kEveToken, "GET", path).json["connection_file"].is_null());
    CHECK(world.ask(kEveToken, "GET", "/v1/sessions")
              .json["sessions"][0]["connection_file"]
              .is_null());
    CHECK(world.ask(kAliceToken, "GET", path).json["connection_file"] == "/secret/place.json");
}

TEST_CASE("keys and cached answers are an agent's own", "[agent][roles]") {
    Inhabited world;
    const auto run = [&world](const std::string& token, const char* body) {
        return world.ask(token, "POST", "/v1/executions", body).json;
    };
    const char* keyed = R"({"code":"2","idempotency_key":"k"})";
    const char* cached = R"({"code":"3","cache_ttl_s":60})";
    const auto sandboxes = [&world] { return world.api.backend.asked.size(); };
    const std::size_t before = sandboxes();
    CHECK(run(kAliceToken, keyed)["status"] == "ok");
    CHECK(run(kAliceToken, keyed)["status"] == "ok");
    CHECK(sandboxes() == before + 1);
    CHECK(run(kBobToken, keyed)["status"] == "ok");
    CHECK(sandboxes() == before + 2);
    // Not a conflict either: that would show that another principal used the key.
    CHECK(run(kBobToken, R"({"code":"4","idempotency_key":"k2"})")["status"] == "ok");
    CHECK(run(kAliceToken, R"({"code":"5","idempotency_key":"k2"})")["status"] == "ok");
    CHECK(run(kAliceToken, cached)["cached"] == false);
    CHECK(run(kBobToken, cached)["cached"] == false);
    CHECK(run("t", cached)["cached"] == false);
    CHECK(run(kAliceToken, cached)["cached"] == true);
}

TEST_CASE(
    "the history of a session belongs to its owner, also when another principal ran the code",
    "[agent][roles]") {
    const cellkeep::test::TemporaryDirectory directory;
    const auto store =
        store::Store::open(directory.path() + "/h.db", [](const std::string&) {}).value();
    Inhabited world(store.get());
    REQUIRE(world.api.history.on_session_created(world.session).has_value());
    const std::string path = "/v1/sessions/ses_1/executions";
    const auto run = world.ask("t", "POST", path, Inhabited::kCode);
    REQUIRE(run.status == 200);
    const std::string one = path + "/" + run.json["id"].get<std::string>();
    REQUIRE(world.api.backend.remove("ses_1").has_value());
    world.api.history.on_session_closed("ses_1");
    for (const std::string& token : {std::string("t"), kAliceToken, kEveToken}) {
        CAPTURE(token);
        CHECK(world.ask(token, "GET", one).json["stored"] == true);
        CHECK(world.ask(token, "GET", path).json["executions"].size() == 2);
        CHECK(world.ask(token, "GET", "/v1/sessions/ses_1").status == 410);
    }
    CHECK(world.ask(kBobToken, "GET", one).status == 404);
    CHECK(world.ask(kBobToken, "GET", path).status == 404);
    CHECK(world.ask(kBobToken, "GET", "/v1/sessions/ses_1").status == 404);
}

}  // namespace
}  // namespace cellkeep::api::test
