// SPDX-License-Identifier: Apache-2.0
//
// Spares over fake sessions. The pool itself: spare_pool_test.cpp.
#include "kernel-manager/service/spare_sessions.hpp"

#include "tests/unit/service/fake_managed_session.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::session {
namespace {

using test::FakeManagedSession;
using test::Steps;

struct SparesFixture {
    boost::asio::io_context io;
    Steps steps;
    test::Places places;
    std::uint32_t next_slot = 0;
    std::optional<Error> start_failure;
    std::optional<Error> adopt_failure;
    bool closed = false;
    SessionStarter::OnEnd on_spare_end;
    std::shared_ptr<Completion<bool>> zygote;  // null: it is there
    std::vector<std::string> waited_for;
    std::shared_ptr<SpareSessions> spares =
        SpareSessions::create(io, {Prespawn{1, {}}}, 0, hooks());
    SessionEntry entry = client_entry();
    std::optional<Status> done;

    SpareSessions::Hooks hooks() {
        return {
            .check = [](const SessionOptions&) { return Status(ok()); },
            .has_room = [this](std::size_t) { return !closed; },
            .claim_slot = [this]() -> Result<Claim<std::uint32_t>> {
                return std::move(*Claim<std::uint32_t>::take(places.slots, next_slot++));
            },
            .wait_for_zygote = [this](std::string kernel) -> boost::asio::awaitable<void> {
                waited_for.push_back(std::move(kernel));
                if (const auto waits = zygote) {
                    (void)co_await Completion<bool>::wait(waits);
                }
            },
            .start =
                [this](SessionEntry& one, SessionFactory::Order order, SessionStarter::OnEnd end) {
                    return start(one, std::move(order), std::move(end));
                },
            .adopt =
                [this](SessionEntry& one, SessionOptions options, SessionStarter::OnEnd) {
                    return adopt(one, std::move(options));
                },
            .remove = [this](
                          SessionEntry one,
                          Death) { steps.push_back(one.session->id() + " removed"); },
            .is_shutting_down = [this] { return closed; },
            .log = [this](const std::string& line) { steps.push_back(line); },
            .on_settled = [] {}};
    }
    boost::asio::awaitable<Status> start(
        SessionEntry& one, SessionFactory::Order order, SessionStarter::OnEnd end) {
        CHECK(order.spare);
        if (start_failure) {
            co_return *start_failure;
        }
        on_spare_end = std::move(end);
        one.session = std::make_shared<FakeManagedSession>(
            "spare" + std::to_string(one.slot.value()), steps, std::move(order.options));
        co_return ok();
    }
    boost::asio::awaitable<Status> adopt(SessionEntry& one, SessionOptions /*options*/) {
        steps.push_back(one.session->id() + " adopted");
        if (adopt_failure) {
            one.session.reset();
            one.slot = {};
            co_return *adopt_failure;
        }
        co_return ok();
    }
    SessionEntry client_entry() {
        SessionEntry one;
        one.kernel_id = std::move(*Claim<std::string>::take(places.kernel_ids, "k"));
        return one;
    }
    void poll() {
        io.restart();
        (void)io.poll();
    }
    void fill() {
        spares->pool()->fill();
        poll();
    }
    void hand_out() {
        test::begin_wait(io, spares->hand_out(entry, SessionOptions(), nullptr), done);
    }
};

TEST_CASE_METHOD(SparesFixture, "a spare that is handed out keeps its place", "[service][spares]") {
    fill();
    REQUIRE(spares->pool()->size() == 1);
    hand_out();
    CHECK(done->has_value());
    REQUIRE(entry.session != nullptr);
    CHECK(entry.session->id() == "spare0");
    CHECK(entry.slot.value() == 0);
    CHECK(steps == Steps{"spare0 adopted"});
    CHECK(spares->pool()->size() == 0);
    entry = {};
    CHECK(places.slots->empty());
}

TEST_CASE_METHOD(
    SparesFixture, "a spare waits for the zygote of its environment", "[service][spares]") {
    Prespawn geo{1, {}};
    geo.options.environment = "geo";
    spares = SpareSessions::create(io, {Prespawn{1, {}}, geo}, 0, hooks());
    fill();
    CHECK(waited_for == std::vector<std::string>{"python", "python3-geo"});
}

TEST_CASE_METHOD(SparesFixture, "without a spare there is no session", "[service][spares]") {
    hand_out();
    CHECK(done->has_value());
    CHECK(entry.session == nullptr);
    CHECK(entry.kernel_id.value() == "k");
}

TEST_CASE_METHOD(
    SparesFixture, "a spare that fails is distinguished from a bad request", "[service][spares]") {
    fill();
    SECTION("its own fault: the client gets another session") {
        adopt_failure = Error(ErrorCode::kConflict, "dead");
        hand_out();
        CHECK(done->has_value());
        CHECK(steps.back() == "a spare session could not be handed out: dead");
    }
    SECTION("the client's fault") {
        adopt_failure = Error(ErrorCode::kInvalidArgument, "bad");
        hand_out();
        REQUIRE(done->has_error());
        CHECK(done->error().message() == "create session: bad");
    }
    SECTION("the server ends") {
        adopt_failure = Error(ErrorCode::kConflict, "closed");
        closed = true;
        hand_out();
        CHECK(done->has_error());
    }
    CHECK(entry.session == nullptr);
    CHECK(entry.kernel_id.value() == "k");
}

TEST_CASE_METHOD(SparesFixture, "a spare gives its place back", "[service][spares]") {
    fill();
    SECTION("when a client needs it") {
        CHECK(spares->pool()->give_way());
        CHECK(steps == Steps{"spare0 removed"});
    }
    SECTION("when it dies") {
        on_spare_end("spare0", {});
        CHECK(steps.front() == "spare0 removed");
    }
    SECTION("when the server ends") {
        closed = true;
        spares->pool()->stop();
        CHECK(steps == Steps{"spare0 removed"});
    }
    CHECK(spares->pool()->size() == 0);
    CHECK(places.slots->empty());
}

TEST_CASE_METHOD(SparesFixture, "what cannot be made keeps no place", "[service][spares]") {
    SECTION("it does not start") {
        start_failure = Error(ErrorCode::kTimeout, "no");
        fill();
    }
    SECTION("the server ends while it waits for its zygote") {
        zygote = std::make_shared<Completion<bool>>(io);
        fill();
        CHECK(places.slots->size() == 1);
        closed = true;
        spares->pool()->stop();
        zygote->set(true);
        poll();
    }
    CHECK(spares->pool()->size() == 0);
    CHECK(places.slots->empty());
    spares->pool()->stop();
}

}  // namespace
}  // namespace cellkeep::session
