// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/egress_refusal.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <set>

using namespace cellkeep;
using namespace cellkeep::egress;
using Catch::Matchers::Contains;

TEST_CASE("every reason has a code of its own and a title", "[egress][refusal]") {
    std::set<std::string_view> codes;
    for (int i = 0; i <= static_cast<int>(Reason::kInternal); ++i) {
        const auto reason = static_cast<Reason>(i);
        CAPTURE(i, code_of(reason));
        CHECK(codes.insert(code_of(reason)).second);
        CHECK_FALSE(title_of(reason).empty());
        CHECK((reason == Reason::kAllowed || status_of(reason) >= 400));
    }
}

TEST_CASE("a refusal is a problem that a program can read", "[egress][refusal]") {
    const std::string answer = to_http(
        {Reason::kNotAllowed, "a \"quoted\" detail\r\nX: y"},
        {{"example.org", false}, 443},
        Afterwards::kKeepAlive,
        /*without_body=*/false);
    const std::size_t end = answer.find("\r\n\r\n") + 4;
    CHECK_THAT(
        answer.substr(0, end),
        Contains("HTTP/1.1 403 Forbidden\r\n") && Contains("X-Cellkeep-Deny: not_allowed\r\n") &&
            Contains("application/problem+json") && Contains("keep-alive") && !Contains("X: y"));
    CHECK_THAT(answer, Contains("Content-Length: " + std::to_string(answer.size() - end) + "\r\n"));
    const auto problem = nlohmann::json::parse(answer.substr(end));
    CHECK(problem.at("type") == "/problems/egress/not_allowed");
    CHECK(problem.at("host") == "example.org");
    CHECK(problem.at("port") == 443);
    CHECK(problem.at("detail") == "a \"quoted\" detail\r\nX: y");
    const std::string to_head =
        to_http({Reason::kNotAllowed, ""}, {}, Afterwards::kClose, /*without_body=*/true);
    CHECK(to_head.ends_with("Connection: close\r\n\r\n"));
}
