// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/message/negotiation.hpp"

#include <catch2/catch.hpp>

#include <optional>
#include <string>
#include <vector>

namespace cellkeep::http {
namespace {

const std::vector<std::string_view> kOffers = {
    "application/json", "text/event-stream", "text/plain"};

TEST_CASE("the type with the highest quality is chosen", "[http][negotiation]") {
    const auto [accept, chosen] = GENERATE(table<std::string, int>({
        {"", 0},
        {" ", 0},
        {"*/*", 0},
        {"text/*", 1},
        {"TEXT/Event-Stream", 1},
        {"text/event-stream, application/json", 0},
        {"text/event-stream;q=1, application/json;q=0.999", 1},
        {"application/json;q=0.1, */*;q=0.2", 1},
        {"text/*;q=0.9, text/event-stream;q=0.1, application/json;q=0.5", 2},
        {"text/html;q=1, text/plain;q=0.001", 2},
        {"*/*;q=0, text/plain", 2},
        {"application/json; charset=utf-8", 0},
        {"application/json;version=2, text/plain;q=0.1", 2},
        {"text/plain;note=\"a,b;q=0\", text/event-stream", 1},
        {",,text/plain,", 2},
        {"application/json;q=1.001, text/plain;q=0.1", 2},
        {"application/json;q=x, text/plain;q=0.1", 2},
    }));
    CAPTURE(accept);
    CHECK(choose_media_type(accept, kOffers) == std::optional(static_cast<std::size_t>(chosen)));
}

TEST_CASE("a client that accepts none of the offered types gets none", "[http][negotiation]") {
    const auto* const accept = GENERATE(
        "text/html",
        "application/json;q=0, text/*;q=0",
        "*/*;q=0",
        "json",
        "*",
        "application/json;q=",
        "\"application/json",
        "image/*, audio/*;q=0.5");
    CAPTURE(accept);
    CHECK_FALSE(choose_media_type(accept, kOffers).has_value());
}

TEST_CASE("a preference is found among others", "[http][negotiation]") {
    CHECK(prefers("respond-async", "respond-async"));
    CHECK(prefers("wait=5, Respond-Async;foo=1", "respond-async"));
    CHECK(prefers("respond-async=\"\"", "respond-async"));
    CHECK_FALSE(prefers("", "respond-async"));
    CHECK_FALSE(prefers("respond-asynchronously, x=respond-async", "respond-async"));
    CHECK_FALSE(prefers("x=\"a, respond-async\"", "respond-async"));
}

}  // namespace
}  // namespace cellkeep::http
