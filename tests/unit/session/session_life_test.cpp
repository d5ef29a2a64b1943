// SPDX-License-Identifier: Apache-2.0
//
// When a session is looked at, and what follows. The rules: culler_test.cpp.
#include "kernel-manager/session/session_life.hpp"

#include "kernel-manager/limits/death_notice.hpp"

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include <memory>
#include <vector>

namespace cellkeep::session {
namespace {

using namespace std::chrono_literals;

struct LifeFixture {
    boost::asio::io_context io;
    SessionOptions options = lasting(std::chrono::seconds(0));
    bool busy = false;
    bool dead = false;
    bool spare = false;
    std::vector<Death> ends;
    std::shared_ptr<int> session = std::make_shared<int>(0);
    SessionLife life{
        io,
        options,
        {.is_busy = [this] { return busy; },
         .is_dead = [this] { return dead; },
         .is_spare = [this] { return spare; },
         .end = [this](const Death& reason) { ends.push_back(reason); }},
        [this] { return session; }};

    static SessionOptions lasting(std::chrono::seconds idle) {
        SessionOptions one;
        one.limits.idle = idle;
        one.limits.lifetime = std::chrono::seconds(0);
        return one;
    }
    bool waits() {
        io.restart();
        (void)io.poll();
        return !io.stopped();
    }
    void run_until_end() {
        io.restart();
        while (ends.empty()) {
            REQUIRE(io.run_one_for(20s) == 1);
        }
    }
};

TEST_CASE_METHOD(LifeFixture, "a session without an end has no alarm", "[session][life]") {
    life.review();
    CHECK_FALSE(waits());
    CHECK(ends.empty());
}

TEST_CASE_METHOD(LifeFixture, "an idle session ends by its alarm", "[session][life]") {
    options.limits.idle = 1s;
    life.review();
    CHECK(waits());
    SECTION("when its time has come") {
        run_until_end();
        CHECK(ends.front().kind == Death::Kind::kCulled);
        CHECK(ends.front().detail == 0);
    }
    SECTION("not after it has been stopped") {
        life.stop();
        CHECK_FALSE(waits());
        life.review();
        CHECK_FALSE(waits());
        CHECK(ends.empty());
    }
    SECTION("not while its owner is being destroyed") {
        session.reset();
        io.restart();
        (void)io.run_one_for(20s);
        CHECK(ends.empty());
    }
}

TEST_CASE_METHOD(LifeFixture, "an old session says so", "[session][life]") {
    options.limits.lifetime = 1s;
    life.review();
    run_until_end();
    CHECK(ends.front().detail == kCulledForAge);
}

TEST_CASE_METHOD(LifeFixture, "a spare is not looked at", "[session][life]") {
    options.limits.idle = 1s;
    spare = true;
    life.review();
    CHECK_FALSE(waits());
    spare = false;
    life.begin_anew();
    life.review();
    CHECK(waits());
}

TEST_CASE_METHOD(LifeFixture, "the end of what kept it brings a look", "[session][life]") {
    options.limits.idle = 1s;
    SECTION("a request") {
        busy = true;
        life.review();
        CHECK_FALSE(waits());  // no alarm: the request's end calls
        busy = false;
        life.review_if_kept();
        CHECK(waits());
    }
    SECTION("the last client") {
        auto client = life.connect_client();
        life.review();
        CHECK(life.clients().count() == 1);
        CHECK_FALSE(waits());
        client.reset();
        CHECK(waits());
    }
    SECTION("a client that would come back") {
        auto returning = life.connect_returning_client();
        auto staying = life.connect_client();
        CHECK(life.clients().count() == 2);
        CHECK(life.clients().staying() == 1);
        staying.reset();
        CHECK(life.clients().count() == 1);
        CHECK(life.clients().staying() == 0);
        life.review();
        CHECK_FALSE(waits());
        returning.reset();
        CHECK(life.clients().count() == 0);
        CHECK(life.clients().staying() == 0);
        CHECK(waits());
    }
    SECTION("nothing kept it: no look") {
        life.review_if_kept();
        CHECK_FALSE(waits());
    }
}

TEST_CASE_METHOD(LifeFixture, "activity has the time of the wall clock", "[session][life]") {
    CHECK(life.last_activity() == life.created_at());
    life.activity().touch(life.created_steady() + 3s);
    CHECK(life.last_activity() == life.created_at() + 3s);
    life.begin_anew();
    CHECK(life.last_activity() == life.created_at());
}

}  // namespace
}  // namespace cellkeep::session
