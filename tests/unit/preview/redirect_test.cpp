// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/preview/redirect.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <vector>

namespace cellkeep::preview {
namespace {

constexpr const char* kHere = "127.0.0.1:8888";
constexpr const char* kOwnHost = "8000-0123.localhost:8888";

PreviewPlace path_place() {
    PreviewPlace place;
    place.port = 8000;
    place.bears_token = true;
    place.prefix = "/v1/sessions/ses_1/ports/8000";
    place.target = "/a/b?c";
    return place;
}

PreviewPlace host_place() {
    PreviewPlace place;
    place.port = 8000;
    place.own_host = true;
    place.target = "/a/b?c";
    return place;
}

TEST_CASE("a redirect stays within the server inside", "[preview]") {
    const PreviewPlace place = path_place();
    for (const auto& [given, wanted] : std::vector<std::pair<std::string, std::string>>{
             {"/", "/"},
             {"/x?y#z", "/x?y#z"},
             {"x", "/a/x"},
             {"./x", "/a/x"},
             {"", "/a/b"},
             {"?q", "/a/b?q"},
             {"#f", "/a/b#f"},
             {"..", "/"},
             {"../../../../../v1/sessions", "/v1/sessions"},
             {"/../../v1/sessions", "/v1/sessions"},
             {"/%2e%2E/.%2e/v1", "/v1"},
             {"/x/..", "/"},
             {"/x/./y/", "/x/y/"},
             {"/x/%2e", "/x/"},
             {"http://localhost:8000/x", "/x"},
             {"HTTP://127.0.0.1:8000", "/"},
             {"https://127.8.9.1:8000/../x", "/x"},
             {"//localhost:8000/x?y", "/x?y"},
             {"http://0.0.0.0:8000/x", "/x"}}) {
        CAPTURE(given);
        CHECK(rewrite_location(given, place, kHere) == place.prefix + wanted);
    }
}

TEST_CASE("no redirect leads a client with a token elsewhere", "[preview]") {
    for (const char* location :
         {"http://127.0.0.1:8888/v1/sessions",
          "http://localhost:8888/v1/sessions",
          "//localhost:8888/",
          "http://localhost:80/",
          "https://example.org/",
          "//example.org/",
          "http:/x",
          "http:x",
          "https:\\\\x",
          "\\x",
          "/\\x",
          "/a b",
          " /a",
          "/a\r\nX: y",
          "/a\tb",
          "http://[::1",
          "http://a@b/",
          "http://localhost:8000x/",
          "http://localhost:8000:1/",
          "javascript:alert(1)",
          "file:///etc/passwd"}) {
        CAPTURE(location);
        CHECK_FALSE(rewrite_location(location, path_place(), kHere).has_value());
    }
}

TEST_CASE(
    "at a host of its own a redirect is the server's inside, but not to this server", "[preview]") {
    for (const char* location :
         {"/v1/sessions",
          "../../x",
          "x",
          "",
          "https://example.org/x",
          "//example.org/x",
          "http://localhost:9999/x",
          "http://8000-0123.localhost:8888/x",
          "http://8001-0123.localhost:8888/x",
          "app://x"}) {
        CAPTURE(location);
        CHECK(rewrite_location(location, host_place(), kOwnHost) == location);
    }
    for (const char* location :
         {"http://localhost:8888/v1/sessions",
          "http://LocalHost:8888/",
          "//localhost:8888/",
          "http://127.0.0.1:8888/",
          "http://127.1:8888/",
          "http://127.0.0.1.:8888/",
          "http://2130706433:8888/",
          "http://0x7f000001:8888/",
          "http://0177.0.0.1:8888/",
          "http://%6cocalhost:8888/",
          "http://localhost.:8888/",
          "http://[::1]:8888/",
          "http://[0:0:0:0:0:0:0:1]:8888/",
          "http://[::ffff:127.0.0.1]:8888/",
          "http://1-x.localhost:8888/v1/sessions",
          "http://8000-0124.localhost:8888/x",
          "http://8000-0124.127.0.0.1:8888/x",
          "http:/localhost:8888/",
          "/\\localhost:8888/",
          "http://u@localhost:8888/"}) {
        CAPTURE(location);
        CHECK_FALSE(rewrite_location(location, host_place(), kOwnHost).has_value());
    }
    // A client with a token of the server stays at the host.
    PreviewPlace bearing = host_place();
    bearing.bears_token = true;
    for (const char* location : {"/x", "x", "http://8000-0123.localhost:8888/x"}) {
        CHECK(rewrite_location(location, bearing, kOwnHost) == location);
    }
    for (const char* location :
         {"https://example.org/x",
          "//example.org/x",
          "app://x",
          "http://8001-0123.localhost:8888/x"}) {
        CHECK_FALSE(rewrite_location(location, bearing, kOwnHost).has_value());
    }
    // The name that the operator gave is this server's, too; another port of it is not.
    const std::string named = "8000-0123.cells.example.org:8888";
    CHECK_FALSE(rewrite_location("http://cells.example.org:8888/", host_place(), named));
    CHECK(rewrite_location("http://cells.example.org/", host_place(), named));
    CHECK_FALSE(
        rewrite_location("http://cells.example.org/", host_place(), "8000-0123.cells.example.org"));
    CHECK_FALSE(rewrite_location("http://1-x.localhost:8888/", host_place(), named));
}

TEST_CASE("dot segments are resolved as browsers do", "[preview]") {
    for (const auto& [given, wanted] : std::vector<std::pair<std::string, std::string>>{
             {"/", "/"},
             {"", "/"},
             {"/a", "/a"},
             {"/a/", "/a/"},
             {"//a", "//a"},
             {"/a/../b", "/b"},
             {"/a/..", "/"},
             {"/...", "/..."},
             {"/a/%2e.", "/"},
             {"/a/%2e%2e%2e", "/a/%2e%2e%2e"},
             {"/../..", "/"}}) {
        CAPTURE(given);
        CHECK(remove_dot_segments(given) == wanted);
    }
}

}  // namespace
}  // namespace cellkeep::preview
