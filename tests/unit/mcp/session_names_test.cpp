// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/tools/session_names.hpp"

#include "kernel-manager/mcp/limits.hpp"
#include "tests/unit/mcp/mcp_server.hpp"

#include <boost/asio/co_spawn.hpp>
#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::mcp::test {
namespace {

namespace asio = boost::asio;

const http::Principal kAlice{"alice", http::Role::kAgent};
const http::Principal kBob{"bob", http::Role::kAgent};
const http::Principal kAdmin{"admin", http::Role::kAdmin};

struct Names {
    FakeSessionService backend;
    SessionNames names{backend.io, backend};

    Result<SessionNames::Opened> open(
        const http::Principal& principal,
        const std::string& name,
        const std::string& language = "") {
        std::optional<Result<SessionNames::Opened>> opened;
        const auto run = [&]() -> asio::awaitable<void> {
            NewSession wanted{language};
            opened.emplace(co_await names.open(principal, name, std::move(wanted)));
        };
        backend.io.restart();
        asio::co_spawn(backend.io, run, [](std::exception_ptr thrown) { REQUIRE_FALSE(thrown); });
        (void)backend.io.run();
        return *opened;
    }
    Result<SessionNames::Session> branch(
        const http::Principal& principal, const std::string& name, const std::string& parent) {
        std::optional<Result<SessionNames::Session>> made;
        const auto run = [&]() -> asio::awaitable<void> {
            session::BranchOrder order{.session = parent, .checkpoint = "ckp_1", .label = name};
            made.emplace(co_await names.branch(principal, name, std::move(order)));
        };
        backend.io.restart();
        asio::co_spawn(backend.io, run, [](std::exception_ptr thrown) { REQUIRE_FALSE(thrown); });
        (void)backend.io.run();
        return *made;
    }
};

TEST_CASE("a name is its principal's", "[mcp][names]") {
    Names one;
    const auto alices = one.open(kAlice, "work");
    const auto bobs = one.open(kBob, "work");
    REQUIRE(alices.has_value());
    REQUIRE(bobs.has_value());
    CHECK(alices.value().created);
    CHECK(bobs.value().created);
    CHECK(alices.value().session != bobs.value().session);
    CHECK(one.backend.asked[1].owner == "bob");
    CHECK(one.open(kAlice, "work").value().session == alices.value().session);
    CHECK_FALSE(one.open(kAlice, "work").value().created);
}

TEST_CASE("an id reaches only what the principal may see", "[mcp][names]") {
    Names one;
    const std::string id = one.open(kAlice, "work").value().session->id();
    CHECK(one.open(kAlice, id).value().session->id() == id);
    CHECK(one.open(kAdmin, id).value().session->id() == id);
    CHECK(one.open(kBob, id).error().code() == ErrorCode::kNotFound);
    CHECK(one.names.find(kBob, id).has_error());
    CHECK(one.names.close(kBob, id).has_error());
    CHECK(one.names.list(kBob).empty());
    CHECK(one.open(kAlice, "ses_99").error().code() == ErrorCode::kNotFound);
    // Both answers are the same: that there is one cannot be seen.
    CHECK(one.names.find(kBob, id).error().code() == one.names.find(kBob, "ses_99").error().code());
}

TEST_CASE("names are short words", "[mcp][names]") {
    CHECK(is_session_name("a"));
    CHECK(is_session_name("A-b_c.9"));
    CHECK(is_session_name(std::string(kSessionNameBytesMax, 'n')));
    for (const std::string& wrong :
         {std::string(),
          std::string("a b"),
          std::string("a/b"),
          std::string("\u00e4"),
          std::string("a\n"),
          std::string(1, '\0'),
          std::string(kSessionNameBytesMax + 1, 'n')}) {
        CAPTURE(wrong);
        CHECK_FALSE(is_session_name(wrong));
    }
}

TEST_CASE("two first uses at once get one session", "[mcp][names]") {
    Names one;
    one.backend.gate = std::make_shared<Completion<bool>>(one.backend.io);
    std::vector<SessionNames::Opened> opened;
    const auto run = [&]() -> asio::awaitable<void> {
        NewSession wanted;
        auto got = co_await one.names.open(kAlice, "work", std::move(wanted));
        REQUIRE(got.has_value());
        opened.push_back(got.value());
    };
    for (int i = 0; i < 2; ++i) {
        asio::co_spawn(
            one.backend.io, run, [](std::exception_ptr thrown) { REQUIRE_FALSE(thrown); });
    }
    (void)one.backend.io.poll();
    CHECK(opened.empty());
    one.backend.gate->set(true);
    (void)one.backend.io.run();
    REQUIRE(opened.size() == 2);
    CHECK(opened[0].session == opened[1].session);
    CHECK(one.backend.sessions.size() == 1);
}

TEST_CASE("a session that has ended is replaced, and that is said", "[mcp][names]") {
    Names one;
    const std::string first = one.open(kAlice, "work").value().session->id();
    CHECK(one.backend.remove(first).has_value());
    CHECK(one.names.find(kAlice, "work").error().code() == ErrorCode::kNotFound);
    const auto second = one.open(kAlice, "work");
    CHECK(second.value().created);
    CHECK(second.value().replaced);
    // One that was closed on purpose is not missed.
    CHECK(one.names.close(kAlice, "work").has_value());
    CHECK(one.names.close(kAlice, "work").has_error());
    const auto third = one.open(kAlice, "work");
    CHECK(third.value().created);
    CHECK_FALSE(third.value().replaced);
}

TEST_CASE(
    "an answer tells of a loss even if the next session first fails to start", "[mcp][names]") {
    Names one;
    const std::string first = one.open(kAlice, "work").value().session->id();
    CHECK(one.backend.remove(first).has_value());
    one.backend.failure = Error(ErrorCode::kLimitExceeded, "too many sessions");
    CHECK(one.open(kAlice, "work").has_error());
    CHECK(one.open(kAlice, "other").has_error());
    CHECK(one.branch(kAlice, "work", first).has_error());
    one.backend.failure.reset();
    CHECK(one.open(kAlice, "work").value().replaced);
    CHECK_FALSE(one.open(kAlice, "other").value().replaced);
}

TEST_CASE("runs of a session may take as long as the server lets any take", "[mcp][names]") {
    Names one;
    (void)one.open(kAlice, "work");
    const session::LimitCeilings most = one.backend.ceilings();
    CHECK(one.backend.asked.at(0).limits.wall == most.wall);
    CHECK(one.backend.asked.at(0).limits.cpu == most.cpu);
    CHECK(one.backend.asked.at(0).limits.memory_mb == session::SessionLimits().memory_mb);
    CHECK_FALSE(one.backend.asked.at(0).branches);
}

TEST_CASE("a branch has a name of its own", "[mcp][names]") {
    Names one;
    const std::string parent = one.open(kAlice, "work").value().session->id();
    const auto made = one.branch(kAlice, "other", parent);
    REQUIRE(made.has_value());
    CHECK(one.names.find(kAlice, "other").value() == made.value());
    CHECK(one.backend.branched.at(0).label == "other");
    for (const char* taken : {"work", "other"}) {
        CHECK(one.branch(kAlice, taken, parent).error().code() == ErrorCode::kConflict);
    }
    for (const char* wrong : {"", "a b", "ses_1", "../x"}) {
        CAPTURE(wrong);
        CHECK(one.branch(kAlice, wrong, parent).error().code() == ErrorCode::kInvalidArgument);
    }
    CHECK(one.backend.branched.size() == 1);
    CHECK(one.names.find(kBob, "other").has_error());
    CHECK(one.names.check_free(kBob, "other").has_value());
    // One that is being made has its name already.
    one.backend.gate = std::make_shared<Completion<bool>>(one.backend.io);
    const auto run = [&]() -> asio::awaitable<void> {
        NewSession wanted;
        (void)co_await one.names.open(kAlice, "third", std::move(wanted));
    };
    one.backend.io.restart();
    asio::co_spawn(one.backend.io, run, [](std::exception_ptr thrown) { REQUIRE_FALSE(thrown); });
    (void)one.backend.io.poll();
    CHECK(one.names.check_free(kAlice, "third").has_error());
    one.backend.gate->set(true);
    (void)one.backend.io.run();
}

TEST_CASE("a long name is not repeated whole", "[mcp][names]") {
    Names one;
    const std::string name(1'000'000, 'n');
    CHECK(one.names.find(kAlice, name).error().message().size() < 20'000);
}

TEST_CASE("an interpreter that was replaced is told once", "[mcp][names]") {
    Names one;
    (void)one.open(kAlice, "work");
    auto& session = *one.backend.sessions[0];
    session.edit().languages = {{"python", std::nullopt, std::nullopt, 2}};
    CHECK(one.names.look(session, "python") == State::kKept);
    session.edit().languages[0].restarts = 3;
    CHECK(one.names.look(session, "sql") == State::kKept);
    CHECK(one.names.look(session, "python") == State::kLost);
    CHECK(one.names.look(session, "python") == State::kKept);
}

TEST_CASE("a restart that is expected is not told", "[mcp][names]") {
    Names one;
    (void)one.open(kAlice, "work");
    auto& session = *one.backend.sessions[0];
    session.edit().languages = {{"python", std::nullopt, std::nullopt, 0}};
    CHECK(one.names.look(session, "python") == State::kKept);
    one.names.expect_restart(session, "python");
    CHECK(one.names.look(session, "python") == State::kKept);  // it has not happened yet
    session.edit().languages[0].restarts = 1;
    CHECK(one.names.look(session, "python") == State::kKept);
    session.edit().languages[0].restarts = 2;
    CHECK(one.names.look(session, "python") == State::kLost);
}

TEST_CASE("a principal has at most kSessionNamesMax names", "[mcp][names]") {
    Names one;
    for (std::size_t i = 0; i < kSessionNamesMax; ++i) {
        REQUIRE(one.open(kAlice, "n" + std::to_string(i)).has_value());
    }
    CHECK(one.names.find(kAlice, "n0").has_value());
    CHECK(one.open(kBob, "other").has_value());
    CHECK(one.names.find(kAlice, "n0").has_value());
    CHECK(one.open(kAlice, "more").has_value());
    CHECK(one.names.find(kAlice, "n0").has_error());  // its session lives, and has its id
    CHECK(one.names.find(kAlice, "n1").has_value());
    CHECK(one.names.list(kAlice).size() == kSessionNamesMax + 1);
}

}  // namespace
}  // namespace cellkeep::mcp::test
