// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/preview/previews.hpp"

#include "protocol/limits.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <vector>

namespace cellkeep::preview {
namespace {

TEST_CASE("an address under the port's own name is made from the request's host", "[preview]") {
    const http::TokenAuth auth("secret");
    Previews previews(auth, {});
    const auto url = [&](const std::string& host, const std::string& token = "") {
        http::Request request;
        request.headers.add("Host", host);
        return previews.public_url(request, "ses_0123", 80, token);
    };
    CHECK(url("127.0.0.1:8888") == "http://80-0123.localhost:8888/");
    CHECK(url("localhost:8888", "T") == "http://80-0123.localhost:8888/?cellkeep_token=T");
    CHECK(url("[::1]:8888") == "http://80-0123.localhost:8888/");
    CHECK(url("cells.example.org") == "http://80-0123.cells.example.org/");
    CHECK_FALSE(url("192.168.1.5:8888").has_value());
    CHECK_FALSE(url("[fe80::1]").has_value());
    CHECK_FALSE(url("").has_value());
    CHECK_FALSE(url("a b").has_value());
}

TEST_CASE("a port's visitors show a token of it or the server's", "[preview]") {
    const http::TokenAuth auth("secret");
    Previews previews(auth, {});
    const auto now = PreviewTokens::Clock::now();
    const auto issued = previews.tokens().issue("ses_1", 80, kPreviewTokenTimeDefault, now);
    REQUIRE(issued.has_value());
    const std::string token = issued.value().token;
    const auto who = [&](const std::string& name,
                         const std::string& value,
                         const std::string& target = "/",
                         std::uint16_t port = 80) {
        http::Request request;
        request.target = std::move(http::parse_target(target)).value();
        if (!name.empty()) {
            request.headers.add(name, value);
        }
        return previews.identify(request, "ses_1", port, "alice");
    };
    CHECK(who("Cellkeep-Preview-Token", token)->principal.name == "alice");
    CHECK(who("Cellkeep-Preview-Token", token)->by_header);
    CHECK_FALSE(who("Cookie", "cellkeep_preview=" + token)->by_header);
    CHECK_FALSE(who("", "", "/?cellkeep_token=" + token)->by_header);
    CHECK(who("Authorization", "Bearer secret")->principal.name == "admin");
    CHECK(who("X-API-Key", "secret")->by_header);
    // A page could read its address.
    CHECK_FALSE(who("", "", "/?token=secret").has_value());
    // A cookie that another host has set for the domain above does not hide the right one.
    CHECK(who("Cookie", "cellkeep_preview=x; cellkeep_preview=" + token).has_value());
    for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
             {"", ""},
             {"Authorization", "Bearer " + token},
             {"Authorization", "Basic secret"},
             {"Cookie", "cellkeep_preview=secret"},
             {"Cookie", "other=" + token},
             {"Cellkeep-Preview-Token", "secret"}}) {
        CAPTURE(name, value);
        CHECK_FALSE(who(name, value).has_value());
    }
    CHECK_FALSE(who("Cellkeep-Preview-Token", token, "/", 81).has_value());
    // A wrong parameter is not rescued by a right cookie.
    CHECK_FALSE(who("Cookie", "cellkeep_preview=" + token, "/?cellkeep_token=x").has_value());
    previews.on_session_closed("ses_1");
    CHECK_FALSE(who("Cellkeep-Preview-Token", token).has_value());
}

TEST_CASE("another principal, or one that may only read, has no business in a port", "[preview]") {
    const std::string bob(limits::kTokenBytesMin, 'b');
    const std::string eve(limits::kTokenBytesMin, 'e');
    const std::string alice(limits::kTokenBytesMin, 'a');
    const http::TokenAuth auth(
        "secret",
        {{{"alice", http::Role::kAgent}, http::digest_of_token(alice)},
         {{"bob", http::Role::kAgent}, http::digest_of_token(bob)},
         {{"eve", http::Role::kObserver}, http::digest_of_token(eve)}});
    const Previews previews(auth, {});
    const auto passes = [&](const std::string& token) {
        http::Request request;
        request.headers.add("Authorization", "Bearer " + token);
        return previews.identify(request, "ses_1", 80, "alice").has_value();
    };
    CHECK(passes(alice));
    CHECK(passes("secret"));
    CHECK_FALSE(passes(bob));
    CHECK_FALSE(passes(eve));
}

}  // namespace
}  // namespace cellkeep::preview
