// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/router.hpp"

#include <catch2/catch.hpp>

namespace cellkeep::http {
namespace {

Router make_router() {
    Router router;
    for (const auto& [method, pattern] : {
             std::pair<const char*, const char*>{"GET", "/"},
             {"GET", "/s"},
             {"POST", "/s"},
             {"GET", "/s/{id}"},
             {"DELETE", "/s/{id}"},
             {"GET", "/s/{id}/files/{path...}"},
             {"PUT", "/s/{id}/files/{path...}"},
         }) {
        router.add(Route(Access::kChange, method, pattern, nullptr));
    }
    return router;
}

TEST_CASE("a route is found by method and pattern, with its captures", "[http][router]") {
    const Router router = make_router();
    CHECK(router.match("GET", {}).route->pattern == "/");
    CHECK(router.match("POST", {"s"}).route->method == "POST");
    const auto one = router.match("DELETE", {"s", "x"});
    REQUIRE(one.route != nullptr);
    CHECK(one.captures.at("id") == "x");
    const auto file = router.match("PUT", {"s", "x", "files", "a", "b c", "d"});
    REQUIRE(file.route != nullptr);
    CHECK(file.captures.at("path") == "a/b c/d");
}

TEST_CASE("HEAD finds the GET route", "[http][router]") {
    const Router router = make_router();
    const auto match = router.match("HEAD", {"s"});
    REQUIRE(match.route != nullptr);
    CHECK(match.route->method == "GET");
}

TEST_CASE("a pattern with a slash at its end is another path", "[http][router]") {
    Router router = make_router();
    CHECK(router.match("GET", {"s", ""}).route == nullptr);
    router.add(Route(Access::kRead, "GET", "/s/", nullptr));
    REQUIRE(router.match("GET", {"s", ""}).route != nullptr);
    CHECK(router.match("GET", {"s", ""}).route->pattern == "/s/");
    CHECK(router.match("GET", {"s"}).route->pattern == "/s");
    CHECK(router.match("GET", {"s", "", ""}).route == nullptr);
}

TEST_CASE("an unknown path has no methods", "[http][router]") {
    const Router router = make_router();
    const std::vector<std::string> segments = GENERATE(values<std::vector<std::string>>(
        {{"t"},
         {"s", "x", "y"},
         {"s", ""},
         {""},
         {"s", "x", "files"},
         {"s", "x", "files", ""},
         {"S"},
         {"s", "x", "file", "a"},
         {"s", "", "files", "a"}}));
    const auto match = router.match("GET", segments);
    CHECK(match.route == nullptr);
    CHECK(match.allowed.empty());
}

TEST_CASE("a known path with another method names the methods it knows", "[http][router]") {
    const Router router = make_router();
    for (const char* method : {"PATCH", "PUT", "get", "", "TRACE"}) {
        CAPTURE(method);
        const auto match = router.match(method, {"s"});
        CHECK(match.route == nullptr);
        CHECK(allow_value(match.allowed) == "GET, HEAD, POST, OPTIONS");
    }
    CHECK(router.match("HEAD", {"s", "x", "files"}).allowed.empty());
}

TEST_CASE("what takes the rest of a path gets none that another pattern knows", "[http][router]") {
    Router router;
    for (const char* method : {"GET", "PUT", "DELETE"}) {
        const Access access = method == std::string("GET") ? Access::kRead : Access::kChange;
        router.add(Route(access, method, "/p/{path...}", nullptr));
    }
    router.add(Route(Access::kChange, "POST", "/p/tokens", nullptr));
    CHECK(router.match("POST", {"p", "tokens"}).route->pattern == "/p/tokens");
    const auto other = router.match("PUT", {"p", "tokens"});
    CHECK(other.route == nullptr);
    CHECK(allow_value(other.allowed) == "POST, OPTIONS");
    for (const auto& segments : {std::vector<std::string>{"p", "tokens", "x"}, {"p", "token"}}) {
        REQUIRE(router.match("PUT", segments).route != nullptr);
        CHECK(router.match("PUT", segments).route->pattern == "/p/{path...}");
    }
}

TEST_CASE(
    "segments that are empty fill no name, and the rest of a path only beside others",
    "[http][router]") {
    Router router;
    router.add(Route(Access::kRead, "GET", "/s/{id}/x", nullptr));
    router.add(Route(Access::kRead, "GET", "/p/{path...}", nullptr));
    using Segments = std::vector<std::string>;
    for (const Segments& none :
         {Segments{},
          {"s"},
          {"s", "", "x"},
          {"s", "a"},
          {"s", "a", "x", ""},
          {"s", "a", "y"},
          {"p"},
          {"p", ""}}) {
        CHECK(router.match("GET", none).route == nullptr);
    }
    CHECK(router.match("GET", {"s", "a", "x"}).captures.find("id")->second == "a");
    const auto rest = [&router](const Segments& segments) {
        return router.match("GET", segments).captures.find("path")->second;
    };
    CHECK(rest({"p", "a"}) == "a");
    CHECK(rest({"p", "a", ""}) == "a/");
    CHECK(rest({"p", "", ""}) == "/");
    CHECK(rest({"p", "", "b"}) == "/b");
}

}  // namespace
}  // namespace cellkeep::http
