// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/docs.hpp"

#include "tests/unit/api/agent_api.hpp"

#include <catch2/catch.hpp>

namespace cellkeep::api::test {
namespace {

TEST_CASE("the documentation's page is the same bytes as in the tree", "[agent][docs]") {
    Api api;
    const auto page = api.ask("GET", "/docs");
    CHECK(page.status == 200);
    CHECK(page.headers.get("Content-Type") == "text/html; charset=utf-8");
    CHECK(page.text.starts_with("<!doctype html>"));
    CHECK(page.text.ends_with("</html>\n"));
    const auto script = api.ask("GET", "/docs/page.js");
    CHECK(script.status == 200);
    CHECK(script.text.ends_with("})();\n"));
}

TEST_CASE("no part of the page may come from elsewhere or be inline", "[agent][docs]") {
    Api api;
    for (const char* path : {"/docs", "/docs/page.js"}) {
        const auto answer = api.ask("GET", path);
        const std::string policy(answer.headers.get("Content-Security-Policy"));
        CAPTURE(path, policy);
        CHECK(policy.find("default-src 'none'") == 0);
        CHECK(policy.find("frame-ancestors 'none'") != std::string::npos);
        CHECK(policy.find("unsafe") == std::string::npos);
        CHECK(policy.find("http") == std::string::npos);
        CHECK(answer.headers.get("Referrer-Policy") == "no-referrer");
        CHECK(answer.headers.get("X-Content-Type-Options") == "nosniff");
        CHECK(answer.text.find("<script>") == std::string::npos);
        CHECK(answer.text.find("style=") == std::string::npos);
    }
}

TEST_CASE("the page is open, its document is not", "[agent][docs]") {
    FakeSessionService backend;
    History history(nullptr);
    const http::TokenAuth auth("t");
    preview::Previews previews(auth, {});
    Routes routes(backend, history, previews, "1");
    http::Router router;
    routes.add_to(router);
    for (const char* part : {"page.js", "viewer.js", "viewer.css"}) {
        const auto match = router.match("GET", {"docs", part});
        REQUIRE(match.route != nullptr);
        CHECK(match.route->access == http::Access::kOpen);
    }
    const auto document = router.match("GET", {"openapi.json"});
    REQUIRE(document.route != nullptr);
    CHECK(document.route->access != http::Access::kOpen);
}

TEST_CASE("only the page's own files are found", "[agent][docs]") {
    CHECK(find_docs_file("/docs") != nullptr);
    CHECK(find_docs_file("/docs/viewer.js") != nullptr);
    CHECK(find_docs_file("/docs/") == nullptr);
    CHECK(find_docs_file("/docs/../page.html") == nullptr);
    CHECK(find_docs_file("docs") == nullptr);
    Api api;
    CHECK(api.ask("GET", "/docs/other.js").status == 404);
    CHECK(api.ask("POST", "/docs").status == 405);
}

}  // namespace
}  // namespace cellkeep::api::test
