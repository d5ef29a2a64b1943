// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/application.hpp"

#include "protocol/limits.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::http {
namespace {

Application make_application() {
    Application application(TokenAuth("t"), HostGuard(std::vector<std::string>()));
    application.router().add(Route(Access::kOpen, "GET", "/healthz", nullptr));
    application.router().add(Route(Access::kRead, "GET", "/s/{id}", nullptr));
    return application;
}

int status_of(const std::string& method, const std::string& target, const Headers& headers) {
    const Application application = make_application();
    Request request;
    request.method = method;
    request.headers = headers;
    const auto admission = application.admit(request, target);
    return admission.route != nullptr ? 0 : admission.refusal.status;
}

Headers good() {
    Headers headers;
    headers.add("Host", "localhost");
    headers.add("Authorization", "Bearer t");
    return headers;
}

TEST_CASE("a 401 names its scheme, and where to look if that was given", "[http][application]") {
    Application application = make_application();
    application.set_challenge(
        "s", [](const Request& request) { return "for=\"" + request.target.path + "\""; });
    const auto challenge = [&](const std::string& target, int status) {
        Request request;
        request.method = "GET";
        (void)application.admit(request, target);
        Response response = to_response(make_problem(status, ""));
        application.finish(request, response);
        return std::string(response.headers.get("WWW-Authenticate"));
    };
    CHECK(challenge("/s/x", 401) == "Bearer realm=\"cellkeep\", for=\"/s/x\"");
    CHECK(challenge("/other", 401) == "Bearer realm=\"cellkeep\"");
    CHECK(challenge("/", 401) == "Bearer realm=\"cellkeep\"");
    CHECK(challenge("/s/x", 403).empty());
    CHECK(challenge("/s/x", 404).empty());
}

TEST_CASE("a good request is admitted with its captures and principal", "[http][application]") {
    const Application application = make_application();
    Request request;
    request.method = "GET";
    request.headers = good();
    REQUIRE(application.admit(request, "/s/x%20y").route != nullptr);
    CHECK(request.capture("id") == "x y");
    CHECK(request.principal.role == Role::kAdmin);
    CHECK(request.capture("none").empty());
}

TEST_CASE("an open route needs no token, but the right host", "[http][application]") {
    Headers headers;
    headers.add("Host", "localhost");
    CHECK(status_of("GET", "/healthz", headers) == 0);
    CHECK(status_of("HEAD", "/healthz", headers) == 0);
    headers.set("Host", "evil.example");
    CHECK(status_of("GET", "/healthz", headers) == 421);
    CHECK(status_of("GET", "/healthz", Headers{}) == 421);
}

TEST_CASE(
    "a Host that is malformed, doubled or not the target's is refused", "[http][application]") {
    CHECK(status_of("GET", "http://localhost/healthz", good()) == 0);
    CHECK(status_of("GET", "http://LOCALHOST:80/s/x", good()) == 0);
    for (const char* foreign :
         {"http://evil.example/healthz", "http://evil.example/s/x", "https://localhost:1/s/x"}) {
        CAPTURE(foreign);
        CHECK(status_of("GET", foreign, good()) == 400);
    }
    Headers doubled = good();
    doubled.add("host", "localhost");
    CHECK(status_of("GET", "/healthz", doubled) == 400);
    for (const char* malformed : {"[::1].evil.com", "[::1]evil", "127.0.0.1:80:evil"}) {
        CAPTURE(malformed);
        Headers headers = good();
        headers.set("Host", malformed);
        CHECK(status_of("GET", "/healthz", headers) == 400);
        CHECK(status_of("GET", "/s/x", headers) == 400);
    }
    // Both names are foreign: a page whose name was rebound to this address sends that.
    Headers rebound = good();
    rebound.set("Host", "evil.example");
    CHECK(status_of("GET", "http://evil.example/healthz", rebound) == 421);
    // A server that others can reach has no list of names, and still wants one Host.
    Application reachable(TokenAuth("t"), HostGuard{});
    reachable.router().add(Route(Access::kOpen, "GET", "/healthz", nullptr));
    const auto open_status = [&reachable](const Headers& headers, const char* target) {
        Request request;
        request.method = "GET";
        request.headers = headers;
        const auto admission = reachable.admit(request, target);
        return admission.route != nullptr ? 0 : admission.refusal.status;
    };
    CHECK(open_status(rebound, "/healthz") == 0);
    CHECK(open_status(Headers{}, "/healthz") == 0);
    CHECK(open_status(doubled, "/healthz") == 400);
    CHECK(open_status(rebound, "http://localhost/healthz") == 400);
}

TEST_CASE("a bad request is refused with the status that says why", "[http][application]") {
    CHECK(status_of("GET", "/s/../x", good()) == 400);
    CHECK(status_of("GET", "s", good()) == 400);
    CHECK(status_of("GET", "/nothing", good()) == 404);
    CHECK(status_of("GET", "/s", good()) == 404);
    CHECK(status_of("POST", "/s/x", good()) == 405);
    CHECK(status_of("BREW", "/healthz", good()) == 405);
    Headers wrong = good();
    wrong.set("Authorization", "Bearer u");
    CHECK(status_of("GET", "/s/x", wrong) == 401);
    Headers none;
    none.add("Host", "127.0.0.1:1");
    CHECK(status_of("GET", "/s/x", none) == 401);
    Headers zipped = good();
    zipped.add("Content-Encoding", "gzip");
    CHECK(status_of("GET", "/s/x", zipped) == 415);
}

TEST_CASE("without a token no answer shows which addresses exist", "[http][application]") {
    Headers none;
    none.add("Host", "localhost");
    CHECK(status_of("GET", "/nothing", none) == 401);
    CHECK(status_of("POST", "/s/x", none) == 401);
}

TEST_CASE("OPTIONS names the methods of an address", "[http][application]") {
    const Application application = make_application();
    Request request;
    request.method = "OPTIONS";
    request.headers = good();
    const auto admission = application.admit(request, "/s/x");
    CHECK(admission.refusal.status == 204);
    CHECK(admission.refusal.headers.get("Allow") == "GET, HEAD, OPTIONS");
    CHECK(status_of("OPTIONS", "*", good()) == 204);
    CHECK(status_of("OPTIONS", "/nothing", good()) == 404);
}

TEST_CASE("errors below a Jupyter prefix are what Jupyter clients read", "[http][application]") {
    Application application(TokenAuth("t"), HostGuard());
    application.add_jupyter_prefix("api");
    const auto finished = [&application](const char* target, Response response) {
        Request request;
        request.target = parse_target(target).value();
        application.finish(request, response);
        return response;
    };
    const Response problem = finished("/api/kernels", to_response(make_problem(404, "no kernel")));
    CHECK(problem.status == 404);
    CHECK(problem.headers.get("Content-Type") == "application/json");
    CHECK(
        nlohmann::json::parse(std::get<std::string>(problem.body)) ==
        nlohmann::json({{"message", "no kernel"}, {"reason", "There is nothing here"}}));

    for (const char* other : {"/", "/v1/api", "/apis", "/v1/sessions"}) {
        CAPTURE(other);
        const Response left = finished(other, to_response(make_problem(404, "no")));
        CHECK(left.headers.get("Content-Type") == "application/problem+json");
    }
    const Response own = finished("/api", make_json(501, {{"short_message", "x"}}));
    CHECK(std::get<std::string>(own.body) == R"({"short_message":"x"})");
    const Response good = finished("/api", make_json(200, {{"a", 1}}));
    CHECK(std::get<std::string>(good.body) == R"({"a":1})");
}

struct Answer {
    int status = 0;
    Headers headers;
    std::string path;
    std::vector<std::string> segments;
};

/// The application's answer to a request, with its final headers; status 0: admitted.
Answer ask(
    const Application& application, std::string method, const char* target, Headers headers) {
    Request request;
    request.method = std::move(method);
    request.headers = std::move(headers);
    auto admission = application.admit(request, target);
    application.finish(request, admission.refusal);
    return {
        admission.route != nullptr ? 0 : admission.refusal.status,
        std::move(admission.refusal.headers),
        request.target.path,
        request.target.segments};
}

Headers headers_of(std::initializer_list<std::pair<const char*, const char*>> fields) {
    Headers headers;
    headers.add("Host", "localhost:8888");
    for (const auto& [name, value] : fields) {
        headers.add(name, value);
    }
    return headers;
}

Application with_post() {
    Application application = make_application();
    application.router().add(Route(Access::kChange, "POST", "/change", nullptr));
    application.router().add(Route(Access::kChange, "GET", "/change", nullptr));
    return application;
}

TEST_CASE("an observer may use the routes that read, and no others", "[http][application]") {
    const std::string agent(limits::kTokenBytesMin, 'a');
    const std::string observer(limits::kTokenBytesMin, 'o');
    Application application(
        TokenAuth(
            "t",
            {{{"robot", Role::kAgent}, digest_of_token(agent)},
             {{"watcher", Role::kObserver}, digest_of_token(observer)}}),
        HostGuard());
    application.router().add(Route(Access::kRead, "GET", "/s", nullptr));
    application.router().add(Route(Access::kChange, "POST", "/s", nullptr));
    application.router().add(Route(Access::kChange, "GET", "/socket", nullptr));
    const auto status = [&application](
                            const char* method, const char* target, const std::string& token) {
        return ask(application,
                   method,
                   target,
                   headers_of({{"Authorization", ("Bearer " + token).c_str()}}))
            .status;
    };
    for (const std::string& token : {std::string("t"), agent}) {
        CAPTURE(token);
        CHECK(status("GET", "/s", token) == 0);
        CHECK(status("POST", "/s", token) == 0);
        CHECK(status("GET", "/socket", token) == 0);
    }
    CHECK(status("GET", "/s", observer) == 0);
    CHECK(status("HEAD", "/s", observer) == 0);
    CHECK(status("OPTIONS", "/s", observer) == 204);
    CHECK(status("POST", "/s", observer) == 403);
    CHECK(status("GET", "/socket", observer) == 403);
    CHECK(status("HEAD", "/socket", observer) == 403);
    CHECK(status("PATCH", "/s", observer) == 405);
    CHECK(status("GET", "/nothing", observer) == 404);
}

TEST_CASE("a foreign page may change nothing and open no WebSocket", "[http][application]") {
    const Application application = with_post();
    const auto status = [&application](
                            const char* method, const char* target, const Headers& headers) {
        return ask(application, method, target, headers).status;
    };
    static constexpr const char* kForeign = "http://evil.example";
    const Headers foreign = headers_of({{"Origin", kForeign}});
    CHECK(status("POST", "/change?token=t", foreign) == 403);
    CHECK(status("POST", "/token/t/change", foreign) == 403);
    CHECK(status("POST", "/change?token=t", headers_of({{"Origin", "null"}})) == 403);
    CHECK(status("POST", "/change", foreign) == 401);
    const Headers upgrade = headers_of({{"Origin", kForeign}, {"Upgrade", "websocket"}});
    CHECK(status("GET", "/change?token=t", upgrade) == 403);
    // A request that only reads is harmless: the page cannot see the answer.
    CHECK(status("GET", "/change?token=t", foreign) == 0);
    // A page cannot set this header without a preflight, so a program has set it.
    CHECK(
        status(
            "POST", "/change", headers_of({{"Origin", kForeign}, {"Authorization", "token t"}})) ==
        0);
    // An empty one counts as none (jupyter_server's gateway client sends it).
    const Headers empty = headers_of({{"Origin", kForeign}, {"Authorization", "token "}});
    CHECK(status("POST", "/change?token=t", empty) == 403);
    CHECK(
        status("POST", "/change?token=t", headers_of({{"Origin", "http://localhost:8888"}})) == 0);
    CHECK(status("POST", "/change?token=t", headers_of({})) == 0);
}

TEST_CASE(
    "a configured origin is answered, with a preflight request or without", "[http][application]") {
    Application application = with_post();
    application.set_origins(OriginPolicy::create({"http://lab.example"}).value());
    const Headers page = headers_of({{"Origin", "http://lab.example"}});
    const Headers preflight = headers_of(
        {{"Origin", "http://lab.example"},
         {"Access-Control-Request-Method", "POST"},
         {"Access-Control-Request-Headers", "authorization,content-type"}});
    const Answer may = ask(application, "OPTIONS", "/change", preflight);
    CHECK(may.status == 204);
    CHECK(may.headers.get("Access-Control-Allow-Origin") == "http://lab.example");
    CHECK(
        may.headers.get("Access-Control-Allow-Methods") ==
        "GET, PUT, POST, PATCH, DELETE, OPTIONS");
    for (const char* name : {"accept", "content-type", "authorization", "x-xsrftoken"}) {
        CHECK(may.headers.get("Access-Control-Allow-Headers").find(name) != std::string_view::npos);
    }
    CHECK_FALSE(may.headers.get("Access-Control-Max-Age").empty());
    CHECK(may.headers.get("Vary") == "Origin");

    CHECK(ask(application, "POST", "/change?token=t", page).status == 0);
    for (const char* target : {"/change", "/none?token=t", "/a/../b"}) {
        CAPTURE(target);
        const Answer error = ask(application, "GET", target, page);
        CHECK(error.status >= 400);
        CHECK(error.headers.get("Access-Control-Allow-Origin") == "http://lab.example");
    }
    const Headers other =
        headers_of({{"Origin", "http://evil.example"}, {"Access-Control-Request-Method", "POST"}});
    const Answer no = ask(application, "OPTIONS", "/change", other);
    CHECK(no.headers.find("Access-Control-Allow-Origin") == nullptr);
    CHECK(no.headers.find("Access-Control-Allow-Methods") == nullptr);
    CHECK(ask(application, "POST", "/change?token=t", other).status == 403);
}

TEST_CASE("_xsrf and X-XSRFToken mean nothing here", "[http][application]") {
    const Application application = with_post();
    CHECK(
        ask(application,
            "POST",
            "/change?token=t&_xsrf=2|abc",
            headers_of({{"X-XSRFToken", "2|abc"}, {"Cookie", "_xsrf=2|abc"}}))
            .status == 0);
    CHECK(
        ask(application, "POST", "/change", headers_of({{"X-XSRFToken", "2|abc"}})).status == 401);
}

TEST_CASE("a token in the path is a token, and is not repeated", "[http][application]") {
    const Application application = make_application();
    const Answer good_one = ask(application, "GET", "/token/t/s/x", headers_of({}));
    CHECK(good_one.status == 0);
    CHECK(good_one.path == "/token/-/s/x");
    CHECK(good_one.segments == std::vector<std::string>({"s", "x"}));
    CHECK(ask(application, "GET", "/token/wrong/s/x", headers_of({})).status == 401);
    CHECK(ask(application, "GET", "/token/wrong/s/x?token=t", headers_of({})).status == 401);
    CHECK(ask(application, "GET", "/token//s/x", headers_of({})).status == 401);
    CHECK(ask(application, "GET", "/token/t", headers_of({})).status == 404);
    CHECK(ask(application, "GET", "/token", headers_of({})).status == 401);
    for (const char* target :
         {"/token/secret/s/x", "/token/secret", "/%74oken/secret/s", "/token/secret/../x"}) {
        CAPTURE(target);
        const Answer refused = ask(application, "GET", target, headers_of({}));
        CHECK(refused.status >= 400);
        CHECK(refused.path.find("secret") == std::string::npos);
    }
}

TEST_CASE("everything is below the base URL", "[http][application]") {
    Application application = make_application();
    application.set_base_url(BaseUrl::parse("/user/anna").value());
    CHECK(ask(application, "GET", "/user/anna/s/x?token=t", headers_of({})).status == 0);
    CHECK(ask(application, "GET", "/user/anna/healthz", headers_of({})).status == 0);
    CHECK(ask(application, "GET", "/user/anna/token/t/s/x", headers_of({})).status == 0);
    CHECK(ask(application, "GET", "/s/x?token=t", headers_of({})).status == 404);
    CHECK(ask(application, "GET", "/healthz", headers_of({})).status == 404);
    CHECK(ask(application, "GET", "/user/annax/healthz", headers_of({})).status == 404);
    CHECK(ask(application, "GET", "/token/t/user/anna/s/x", headers_of({})).status == 404);
    CHECK(ask(application, "OPTIONS", "*", headers_of({})).status == 204);
    const Answer bare = ask(application, "GET", "/user/anna?token=t&x=%20", headers_of({}));
    CHECK(bare.status == 302);
    CHECK(bare.headers.get("Location") == "/user/anna/?token=t&x=%20");
    CHECK(ask(application, "POST", "/user/anna", headers_of({})).status == 404);

    Request request;
    request.target = parse_target("/user/anna/s").value();
    Response created = make_empty(201);
    created.headers.add("Location", "/s/1");
    application.finish(request, created);
    CHECK(created.headers.get("Location") == "/user/anna/s/1");
}

}  // namespace
}  // namespace cellkeep::http
