// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/service/session_starter.hpp"

#include "tests/unit/service/fake_managed_session.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <optional>
#include <string>

namespace cellkeep::session {
namespace {

using test::FakeManagedSession;
using test::Steps;

struct StarterFixture {
    boost::asio::io_context io;
    Steps steps;
    test::Places places;
    std::shared_ptr<FakeManagedSession> session = std::make_shared<FakeManagedSession>("a", steps);
    std::optional<Error> make_failure;
    SessionFactory::Order order;  // as it was made
    std::shared_ptr<SessionStarter> starter = SessionStarter::create(
        io,
        {.make = [this](SessionFactory::Order wanted) { return make(std::move(wanted)); },
         .note_start =
             [this](const ManagedSession& one, bool started) {
                 steps.push_back(one.id() + (started ? " started" : " failed"));
             },
         .remove = [this](
                       SessionEntry failed,
                       Death) { steps.push_back(failed.session->id() + " removed"); }});
    SessionEntry entry = places.entry(nullptr, 7);
    std::optional<Status> done;

    boost::asio::awaitable<Result<std::shared_ptr<ManagedSession>>> make(
        SessionFactory::Order wanted) {
        order = std::move(wanted);
        if (make_failure) {
            co_return *make_failure;
        }
        co_return session;
    }
    SessionStarter::OnEnd on_end() {
        return [this](const std::string& id, Death) { steps.push_back(id + " wants its end"); };
    }
    void start() {
        test::begin_wait(io, starter->start(entry, SessionFactory::Order{}, on_end()), done);
    }
    void poll() {
        io.restart();
        (void)io.poll();
    }
};

TEST_CASE_METHOD(StarterFixture, "a session starts in its place", "[service][starter]") {
    start();
    CHECK(done->has_value());
    CHECK(order.slot == 7);
    CHECK(order.kernel_id == "7");
    CHECK(entry.session == session);
    CHECK(steps == Steps{"a start", "a started"});
    order.on_end_requested("a", {});
    CHECK(steps.size() == 2);  // in a turn of its own: the session calls from inside itself
    poll();
    CHECK(steps.back() == "a wants its end");
}

TEST_CASE_METHOD(
    StarterFixture, "for a session that cannot be made no end is announced", "[service][starter]") {
    make_failure = Error(ErrorCode::kUnavailable, "no");
    start();
    CHECK(done->error().message() == "no");
    CHECK(entry.session == nullptr);
    CHECK(steps.empty());
    CHECK(places.slots->contains(7));  // the caller's
}

TEST_CASE_METHOD(StarterFixture, "a session that does not start is removed", "[service][starter]") {
    session->failure = Error(ErrorCode::kTimeout, "no answer");
    start();
    REQUIRE(done->has_error());
    CHECK(done->error().code() == ErrorCode::kTimeout);
    CHECK(done->error().message() == "create session: no answer");
    CHECK(steps == Steps{"a start", "a failed", "a removed"});
    CHECK(places.slots->empty());
}

TEST_CASE_METHOD(StarterFixture, "the server's end reaches what starts", "[service][starter]") {
    session->starting = std::make_shared<Completion<bool>>(io);
    start();
    CHECK_FALSE(done.has_value());
    starter->stop({});
    poll();
    CHECK(done->has_error());
    CHECK(steps == Steps{"a start", "a close", "a failed", "a removed"});
    starter->stop({});
    CHECK(steps.size() == 4);
}

TEST_CASE_METHOD(
    StarterFixture, "a session that has started is not on its way", "[service][starter]") {
    start();
    starter->stop({});
    CHECK(steps == Steps{"a start", "a started"});
}

TEST_CASE_METHOD(StarterFixture, "a spare goes to its client", "[service][starter]") {
    entry.session = session;
    const bool works = GENERATE(true, false);
    if (!works) {
        session->failure = Error(ErrorCode::kConflict, "died");
    }
    test::begin_wait(io, starter->adopt(entry, SessionOptions(), on_end()), done);
    CHECK(session->kernel == "7");
    CHECK(done->has_value() == works);
    CHECK((entry.session != nullptr) == works);
    CHECK(places.slots->contains(7) == works);
    CHECK(places.kernel_ids->contains("7"));  // for a session that is made from nothing
    CHECK(steps == (works ? Steps{"a adopt"} : Steps{"a adopt", "a removed"}));
    session->on_end({});
    poll();
    CHECK(steps.back() == "a wants its end");
}

}  // namespace
}  // namespace cellkeep::session
