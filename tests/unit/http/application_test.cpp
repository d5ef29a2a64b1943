// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/application.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <string>

namespace cellkeep::http {
namespace {

Application make_application() {
    Application application(TokenAuth("t"), HostGuard(std::vector<std::string>()));
    Route open;
    open.method = "GET";
    open.pattern = "/healthz";
    open.access = Access::kOpen;
    application.router().add(std::move(open));
    Route closed;
    closed.method = "GET";
    closed.pattern = "/s/{id}";
    application.router().add(std::move(closed));
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

TEST_CASE("without a token nothing tells which addresses exist", "[http][application]") {
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

}  // namespace
}  // namespace cellkeep::http
