// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/access/auth.hpp"

#include "protocol/limits.hpp"
#include "protocol/sha256.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

namespace cellkeep::http {
namespace {

Request with_authorization(std::string value) {
    Request request;
    request.headers.add("Authorization", std::move(value));
    return request;
}

TEST_CASE("the token is taken from the header or the query", "[http][auth]") {
    const TokenAuth auth("secret");
    for (const char* value :
         {"Bearer secret", "bearer secret", "TOKEN secret", "token   secret", " token secret "}) {
        CAPTURE(value);
        const auto principal = auth.authenticate(with_authorization(value));
        REQUIRE(principal.has_value());
        CHECK(principal->role == Role::kAdmin);
    }
    Request request;
    request.target = parse_target("/?token=secret").value();
    CHECK(auth.authenticate(request).has_value());
}

TEST_CASE("anything but the token is refused", "[http][auth]") {
    const TokenAuth auth("secret");
    for (const char* value :
         {"",
          "secret",
          "Bearer",
          "Bearer ",
          "Bearer secre",
          "Bearer secrets",
          "Bearer Secret",
          "Bearer secret secret",
          "Basic secret",
          "Bearersecret",
          "token=secret"}) {
        CAPTURE(value);
        CHECK_FALSE(auth.authenticate(with_authorization(value)).has_value());
    }
    CHECK_FALSE(auth.authenticate(Request{}).has_value());
    Request query;
    query.target = parse_target("/?token=").value();
    CHECK_FALSE(auth.authenticate(query).has_value());
    query.target = parse_target("/?Token=secret").value();
    CHECK_FALSE(auth.authenticate(query).has_value());
}

TEST_CASE("a header with an empty token counts as none", "[http][auth]") {
    const TokenAuth auth("secret");
    for (const char* value : {"token ", "token", "Bearer ", "BEARER"}) {
        CAPTURE(value);
        Request request = with_authorization(value);
        CHECK_FALSE(TokenAuth::uses_header(request));
        CHECK_FALSE(auth.authenticate(request).has_value());
        request.target = parse_target("/?token=secret").value();
        CHECK(auth.authenticate(request).has_value());
    }
    for (const char* value : {"", "Basic", "Basic x", "token x", "tokens"}) {
        CAPTURE(value);
        CHECK(TokenAuth::uses_header(with_authorization(value)));
    }
    CHECK_FALSE(TokenAuth::uses_header(Request{}));
}

TEST_CASE("a right token in the query does not make up for a wrong header", "[http][auth]") {
    Request request = with_authorization("Bearer wrong");
    request.target = parse_target("/?token=secret").value();
    CHECK_FALSE(TokenAuth("secret").authenticate(request).has_value());
}

TEST_CASE("a token may come as X-API-Key, and decides alone then", "[http][auth]") {
    const TokenAuth auth("secret");
    const auto with_key = [](const char* key, const char* target) {
        Request request;
        request.headers.add("x-api-key", key);
        request.target = parse_target(target).value();
        return request;
    };
    CHECK(auth.authenticate(with_key("secret", "/")).has_value());
    CHECK(TokenAuth::uses_header(with_key("", "/")));
    for (const char* wrong : {"", "secre", "secrets", "Bearer secret", "secret secret"}) {
        CAPTURE(wrong);
        CHECK_FALSE(auth.authenticate(with_key(wrong, "/")).has_value());
        CHECK_FALSE(auth.authenticate(with_key(wrong, "/?token=secret")).has_value());
    }
    Request both = with_authorization("Bearer wrong");
    both.headers.add("X-API-Key", "secret");
    CHECK_FALSE(auth.authenticate(both).has_value());
}

TEST_CASE(
    "the Host guard admits ports of sandboxes below the names that it knows", "[http][auth]") {
    const HostGuard guard({"lab.example"});
    CHECK(guard.allows("49999-a1.localhost:8888"));
    CHECK(guard.allows("49999-a1.LAB.example"));
    for (const char* other :
         {"49999-a1.evil.example",
          "49999-a1.localhost.evil.example",
          "49999-a1.xlocalhost",
          "a1.localhost",
          "49999-a1",
          "49999-a1.b2.localhost",
          "70000-a1.localhost"}) {
        CAPTURE(other);
        CHECK_FALSE(guard.allows(other));
    }
}

TEST_CASE(
    "the Host guard admits loopback loopback names and the configured names", "[http][auth]") {
    const HostGuard guard({"lab.example.org"});
    for (const char* host :
         {"localhost",
          "localhost:8888",
          "LOCALHOST:1",
          "127.0.0.1",
          "127.0.0.1:8888",
          "[::1]",
          "[::1]:8888",
          "lab.example.org:80"}) {
        CAPTURE(host);
        CHECK(guard.allows(host));
    }
    CHECK(HostGuard().allows("anything"));
}

TEST_CASE("the Host guard refuses every other name", "[http][auth]") {
    const HostGuard guard({"lab.example.org"});
    for (const char* host :
         {"",
          ":8888",
          "evil.example",
          "localhost.evil.example",
          "127.0.0.1.evil.example",
          "127.0.0.2",
          "[::2]",
          "[::1",
          "[::1].evil.com",
          "[::1]evil",
          "[::1]:80:evil",
          "127.0.0.1:80:evil",
          "localhost:evil",
          "localhost,evil.example",
          "user@localhost",
          "::1",
          "xlab.example.org",
          "example.org"}) {
        CAPTURE(host);
        CHECK_FALSE(guard.allows(host));
    }
}

TEST_CASE("tokens of different length or content have different digests", "[http][auth]") {
    const TokenDigest digest = digest_of_token("abc");
    CHECK(equal_digests(digest, digest_of_token("abc")));
    for (const char* other : {"abd", "ab", "abc ", ""}) {
        CAPTURE(other);
        CHECK_FALSE(equal_digests(digest, digest_of_token(other)));
    }
}

const std::string kLong(limits::kTokenBytesMin, 'l');
const std::string kOther(limits::kTokenBytesMin, 'o');

std::vector<NamedToken> named() {
    return {
        {{"analyst", Role::kAgent}, digest_of_token(kLong)},
        {{"watcher", Role::kObserver}, digest_of_token(kOther)},
        {{"careless", Role::kAgent}, digest_of_token("short")}};
}

TEST_CASE(
    "each token of the file is its principal's, the server's own the admin's", "[http][auth]") {
    const TokenAuth auth("secret", named());
    const auto analyst = auth.authenticate(with_authorization("Bearer " + kLong));
    REQUIRE(analyst.has_value());
    CHECK(analyst->name == "analyst");
    CHECK(analyst->role == Role::kAgent);
    const auto watcher = auth.authenticate(with_authorization("token " + kOther));
    REQUIRE(watcher.has_value());
    CHECK(watcher->role == Role::kObserver);
    const auto admin = auth.authenticate(with_authorization("Bearer secret"));
    REQUIRE(admin.has_value());
    CHECK(admin->name == kAdminName);
    CHECK(admin->role == Role::kAdmin);
    Request query;
    query.target = parse_target("/?token=" + kOther).value();
    CHECK(auth.authenticate(query)->name == "watcher");
}

TEST_CASE("no part, digest or name of a named token is accepted as a token", "[http][auth]") {
    const TokenAuth auth("secret", named());
    for (const std::string& wrong :
         {kLong + "l",
          kLong.substr(1),
          "L" + kLong.substr(1),
          protocol::sha256_hex(kLong),
          std::string("analyst"),
          std::string("admin")}) {
        CAPTURE(wrong);
        CHECK_FALSE(auth.authenticate(with_authorization("Bearer " + wrong)).has_value());
    }
}

TEST_CASE(
    "limits::kTokenBytesMin bounds a token that the file knows by its digest", "[http][auth]") {
    const std::string least(limits::kTokenBytesMin, 'x');
    const TokenAuth auth(
        "secret",
        {{{"a", Role::kAgent}, digest_of_token(least)},
         {{"b", Role::kAgent}, digest_of_token(least.substr(1))}});
    CHECK(auth.authenticate(with_authorization("Bearer " + least)).has_value());
    CHECK_FALSE(auth.authenticate(with_authorization("Bearer " + least.substr(1))).has_value());
}

}  // namespace
}  // namespace cellkeep::http
