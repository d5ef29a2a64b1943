// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/rest/client_activity.hpp"

#include "protocol/limits.hpp"

#include <boost/asio/awaitable.hpp>
#include <catch2/catch.hpp>

#include <string>
#include <utility>

namespace cellkeep::jupyter::test {
namespace {

const http::Principal kAlice{"alice", http::Role::kAgent};
const http::Principal kBob{"bob", http::Role::kAgent};
const http::Principal kAdmin{"admin", http::Role::kAdmin};
const http::Principal kObserver{"eve", http::Role::kObserver};
constexpr ClientActivity::Time kNever{};

http::Request request_of(http::Principal principal, const std::string& target = "/api/me") {
    http::Request request;
    request.principal = std::move(principal);
    request.target = http::parse_target(target).value();
    return request;
}

TEST_CASE("a request counts for its principal and an administrator", "[rest][activity]") {
    ClientActivity activity;
    CHECK(activity.last_seen_by(kAdmin, kNever) == kNever);
    activity.note(request_of(kAlice));
    CHECK(activity.last_seen_by(kAlice, kNever) > kNever);
    CHECK(activity.last_seen_by(kAdmin, kNever) > kNever);
    CHECK(activity.last_seen_by(kBob, kNever) == kNever);
    const auto later = ClientActivity::Time::max();
    CHECK(activity.last_seen_by(kAlice, later) == later);
}

TEST_CASE("a look that says so, or of an observer, does not count", "[rest][activity]") {
    ClientActivity activity;
    activity.note(request_of(kAlice, "/api/me?no_track_activity"));
    activity.note(request_of(kAlice, "/api/me?no_track_activity=1"));
    activity.note(request_of(kObserver));
    CHECK(activity.last_seen_by(kAdmin, kNever) == kNever);
    activity.note(request_of(kAlice, "/api/me?x=1"));
    CHECK(activity.last_seen_by(kAdmin, kNever) > kNever);
}

TEST_CASE("a counted route notes each request and bounds an ignored body", "[rest][activity]") {
    ClientActivity activity;
    int handled = 0;
    const auto make = [&](http::Access access, const char* method) {
        return activity.counted(http::Route(
            access,
            method,
            "/x",
            [&handled](http::Request& /*request*/) -> boost::asio::awaitable<http::Response> {
                ++handled;
                co_return http::make_empty(204);
            }));
    };
    const auto get = make(http::Access::kRead, "GET");
    CHECK(get.body_bytes_max == limits::kHttpIgnoredBodyBytesMax);
    CHECK(make(http::Access::kChange, "DELETE").body_bytes_max == limits::kHttpIgnoredBodyBytesMax);
    CHECK(make(http::Access::kChange, "POST").body_bytes_max == limits::kHttpBodyBytesMax);
    CHECK(make(http::Access::kChange, "PATCH").body_bytes_max == limits::kHttpBodyBytesMax);
    http::Request request = request_of(kAlice);
    const auto answer = get.handler(request);
    CHECK(activity.last_seen_by(kAlice, kNever) > kNever);
    CHECK(handled == 0);  // lazy: the answer is awaited by the connection
}

}  // namespace
}  // namespace cellkeep::jupyter::test
