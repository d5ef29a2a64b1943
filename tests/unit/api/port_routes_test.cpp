// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/preview/limits.hpp"
#include "protocol/support/syscall.hpp"
#include "tests/unit/api/agent_api.hpp"

#include <catch2/catch.hpp>

#include <sys/socket.h>

#include <string>
#include <utility>
#include <vector>

namespace cellkeep::api::test {
namespace {

constexpr const char* kTokens = "/v1/sessions/ses_1/ports/8000/tokens";

struct PortApi : Api {
    PortApi() { session = backend.add(); }
    Answer issue(const std::string& body = {}) {
        return ask("POST", kTokens, body, {{"Host", "127.0.0.1:8888"}});
    }
    std::shared_ptr<FakeSession> session;
};

TEST_CASE("a port's token is issued, listed without it, and revoked", "[agent][ports]") {
    PortApi api;
    const auto issued = api.issue();
    CHECK(issued.status == 201);
    CHECK(issued.json["port"] == 8000);
    const std::string token = issued.json["token"];
    const std::string id = issued.json["token_id"];
    CHECK(issued.json["url"] == "http://8000-1.localhost:8888/?cellkeep_token=" + token);
    const auto listed = api.ask("GET", kTokens);
    CHECK(listed.json["tokens"].size() == 1);
    CHECK(listed.json["tokens"][0]["token_id"] == id);
    CHECK(listed.text.find(token) == std::string::npos);
    CHECK(listed.json["url"].is_null());  // the request has no Host
    CHECK(api.ask("GET", "/v1/sessions/ses_1/ports/8001/tokens").json["tokens"].empty());
    CHECK(api.ask("DELETE", kTokens + ("/" + id)).status == 204);
    CHECK(api.ask("DELETE", kTokens + ("/" + id)).status == 404);
    CHECK(api.ask("GET", kTokens).json["tokens"].empty());
    CHECK(api.session->touched == 1);
}

TEST_CASE("a port's token lasts as long as is asked for", "[agent][ports]") {
    PortApi api;
    const std::string most = std::to_string(preview::kPreviewTokenTimeMax.count());
    const std::string beyond = std::to_string(preview::kPreviewTokenTimeMax.count() + 1);
    for (const std::string& seconds : {std::string("1"), most}) {
        CHECK(api.issue(R"({"expires_in_s":)" + seconds + "}").status == 201);
    }
    for (const std::string& body :
         {std::string(R"({"expires_in_s":0})"),
          R"({"expires_in_s":)" + beyond + "}",
          std::string(R"({"expires_in_s":"1"})"),
          std::string(R"({"other":1})"),
          std::string("[]")}) {
        CAPTURE(body);
        CHECK(api.issue(body).status == 422);
    }
    CHECK(api.issue("{").status == 400);
    for (std::size_t i = 2; i < preview::kPreviewTokensMax; ++i) {
        CHECK(api.issue().status == 201);
    }
    CHECK(api.issue().status == 429);
}

TEST_CASE("a request goes to the port that its path names", "[agent][ports]") {
    PortApi api;
    CHECK(api.ask("GET", "/v1/sessions/ses_1/ports/8000/x").status == 502);
    CHECK(api.ask("DELETE", "/v1/sessions/ses_1/ports/65535/x").status == 502);
    CHECK(api.session->connected_ports == std::vector<std::uint16_t>{8000, 65535});
    for (const char* port : {"0", "65536", "08000", "-1", "x", "%20"}) {
        CAPTURE(port);
        const std::string path = "/v1/sessions/ses_1/ports/" + std::string(port) + "/";
        CHECK(api.ask("GET", path).status == 404);
        CHECK(api.ask("GET", path + "tokens").status == 404);
    }
    CHECK(api.session->connected_ports.size() == 2);
    CHECK(api.ask("GET", "/v1/sessions/ses_0/ports/8000/x").status == 404);
}

TEST_CASE("the answer of a server inside is passed on", "[agent][ports]") {
    PortApi api;
    auto ends = make_socket_pair(SOCK_STREAM);
    REQUIRE(ends.has_value());
    REQUIRE(write_all(ends.value().second.get(), "HTTP/1.1 418 Tea\r\nContent-Length: 3\r\n\r\npot")
                .has_value());
    api.session->servers_inside.push_back(std::move(ends.value().first));
    const auto answer = api.ask("GET", "/v1/sessions/ses_1/ports/8000/a%2Fb?c");
    CHECK(answer.status == 418);
    CHECK(answer.text == "pot");
    std::string got(4096, '\0');
    const ssize_t size = ::recv(ends.value().second.get(), got.data(), got.size(), MSG_DONTWAIT);
    REQUIRE(size > 0);
    got.resize(static_cast<std::size_t>(size));
    CHECK(got.starts_with("GET /a%2Fb?c HTTP/1.1\r\nHost: localhost:8000\r\n"));
    CHECK(got.find("Bearer") == std::string::npos);
}

}  // namespace
}  // namespace cellkeep::api::test
