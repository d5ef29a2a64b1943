// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/routes/session_lookup.hpp"

#include "kernel-manager/api/routes/file_place.hpp"
#include "tests/unit/service/fake_session_service.hpp"

#include <boost/asio/co_spawn.hpp>
#include <catch2/catch.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::api {
namespace {

using session::test::FakeSessionService;

http::Request request_for(const std::string& id, http::Principal principal) {
    http::Request request;
    request.captures.emplace("id", id);
    request.principal = std::move(principal);
    return request;
}

http::Response run(
    FakeSessionService& backend, const http::Handler& handler, http::Request& request) {
    std::optional<http::Response> answer;
    backend.io.restart();
    boost::asio::co_spawn(
        backend.io,
        handler(request),
        [&answer](std::exception_ptr thrown, http::Response response) {
            REQUIRE_FALSE(thrown);
            answer = std::move(response);
        });
    (void)backend.io.run();
    REQUIRE(answer.has_value());
    return std::move(*answer);
}

/// Answers 200 and records the paths that it was called with.
FileHandler remember(std::vector<std::string>& paths) {
    return
        [&paths](
            http::Request& /*request*/, FilePlace place) -> boost::asio::awaitable<http::Response> {
            paths.push_back(place.session->id() + ":" + place.path);
            co_return http::make_json(200, nlohmann::json::object());
        };
}

const http::Principal kAlice{"alice", http::Role::kAgent};
const http::Principal kBob{"bob", http::Role::kAgent};
const http::Principal kAdmin{"admin", http::Role::kAdmin};
const http::Principal kObserver{"eve", http::Role::kObserver};

TEST_CASE("only its owner and an administrator find a session", "[agent][lookup]") {
    FakeSessionService backend;
    History history(nullptr);
    const SessionLookup lookup(backend, history);
    session::SessionOptions options;
    options.owner = "alice";
    const auto session = backend.add(std::move(options));
    CHECK(lookup.find(request_for(session->id(), kAlice)) == session);
    CHECK(lookup.find(request_for(session->id(), kAdmin)) == session);
    CHECK(lookup.find(request_for(session->id(), kBob)) == nullptr);
    CHECK(lookup.find(request_for("ses_9", kAdmin)) == nullptr);
    CHECK(lookup.find(request_for("", kAdmin)) == nullptr);
}

TEST_CASE("a handler runs only with a session that the principal sees", "[agent][lookup]") {
    FakeSessionService backend;
    History history(nullptr);
    const SessionLookup lookup(backend, history);
    session::SessionOptions options;
    options.owner = "alice";
    (void)backend.add(std::move(options));
    std::vector<std::string> paths;
    const http::Handler handler = with_place(lookup, PathFrom::kAddress, remember(paths));
    for (const auto& [id, principal] :
         {std::pair("ses_1", kBob), std::pair("ses_2", kAlice), std::pair("", kAdmin)}) {
        CAPTURE(id, principal.name);
        http::Request request = request_for(id, principal);
        request.captures.emplace("path", "a");
        CHECK(run(backend, handler, request).status == 404);
    }
    CHECK(paths.empty());
    http::Request request = request_for("ses_1", kAlice);
    request.captures.emplace("path", "a");
    CHECK(run(backend, handler, request).status == 200);
    CHECK(paths == std::vector<std::string>{"ses_1:a"});
}

TEST_CASE("a place comes from the address or the query, normal and inside", "[agent][lookup]") {
    FakeSessionService backend;
    History history(nullptr);
    const SessionLookup lookup(backend, history);
    (void)backend.add();
    std::vector<std::string> paths;
    const http::Handler by_address = with_place(lookup, PathFrom::kAddress, remember(paths));
    const http::Handler by_query = with_place(lookup, PathFrom::kQuery, remember(paths));
    for (const std::string named : {"..", "a/../..", "/etc", "a//b", "a/", "."}) {
        CAPTURE(named);
        http::Request addressed = request_for("ses_1", kAdmin);
        addressed.captures.emplace("path", named);
        CHECK(run(backend, by_address, addressed).status == 400);
        http::Request asked = request_for("ses_1", kAdmin);
        asked.target = http::parse_target("/x?path=" + named).value();
        CHECK(run(backend, by_query, asked).status == 400);
    }
    CHECK(paths.empty());
    http::Request addressed = request_for("ses_1", kAdmin);
    addressed.captures.emplace("path", "d/a");
    CHECK(run(backend, by_address, addressed).status == 200);
    http::Request asked = request_for("ses_1", kAdmin);
    asked.target = http::parse_target("/x?path=d").value();
    CHECK(run(backend, by_query, asked).status == 200);
    http::Request whole = request_for("ses_1", kAdmin);
    CHECK(run(backend, by_query, whole).status == 200);
    CHECK(paths == std::vector<std::string>{"ses_1:d/a", "ses_1:d", "ses_1:"});
}

TEST_CASE(
    "opening a workspace counts as use of the session, except by an observer", "[agent][lookup]") {
    FakeSessionService backend;
    const auto session = backend.add();
    CHECK(use_workspace(request_for("ses_1", kAdmin), *session).has_value());
    CHECK(session->touched == 1);
    CHECK(use_workspace(request_for("ses_1", kObserver), *session).has_value());
    CHECK(session->touched == 1);
    session->failure = Error(ErrorCode::kConflict, "it has ended");
    const auto refused = use_workspace(request_for("ses_1", kAdmin), *session);
    REQUIRE(refused.has_error());
    CHECK(refused.error().status == 409);
}

}  // namespace
}  // namespace cellkeep::api
