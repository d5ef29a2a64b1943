// SPDX-License-Identifier: Apache-2.0
#include "protocol/support/turns.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <catch2/catch.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
using cellkeep::Completion;
using cellkeep::Turns;

struct TurnsFixture {
    std::unique_ptr<asio::io_context> io = std::make_unique<asio::io_context>(1);
    std::shared_ptr<Turns> turns = std::make_shared<Turns>(*io);
    std::string had;  // the names of those that had a turn, in order

    /// Comes for a turn and keeps it until the end that is returned is set.
    std::shared_ptr<Completion<bool>> come(char name) {
        auto end = std::make_shared<Completion<bool>>(*io);
        asio::co_spawn(*io, keep(turns, end, had, name), asio::detached);
        poll();
        return end;
    }
    void finish(const std::shared_ptr<Completion<bool>>& end) const {
        end->set(true);
        poll();
    }
    void poll() const {
        io->restart();
        (void)io->poll();
    }
    static asio::awaitable<void> keep(
        std::shared_ptr<Turns> turns,
        std::shared_ptr<Completion<bool>> end,
        std::string& had,
        char name) {
        const Turns::Turn turn = co_await Turns::take(std::move(turns));
        had += name;
        (void)co_await Completion<bool>::wait(end);
    }
};

}  // namespace

TEST_CASE("turns are given one after another, in the order of coming", "[support][turns]") {
    TurnsFixture fixture;
    const auto first = fixture.come('a');
    const auto second = fixture.come('b');
    const auto third = fixture.come('c');
    CHECK(fixture.had == "a");
    fixture.finish(second);  // it has no turn that could end
    CHECK(fixture.had == "a");
    fixture.finish(first);
    CHECK(fixture.had == "abc");  // b's turn ended at once
    const auto fourth = fixture.come('d');
    CHECK(fixture.had == "abc");
    fixture.finish(third);
    CHECK(fixture.had == "abcd");
    fixture.finish(fourth);
}

TEST_CASE("a turn that nobody has is had without waiting", "[support][turns]") {
    TurnsFixture fixture;
    fixture.finish(fixture.come('a'));
    fixture.finish(fixture.come('b'));
    CHECK(fixture.had == "ab");
}

TEST_CASE("a turn that is moved ends once", "[support][turns]") {
    TurnsFixture fixture;
    {
        const auto waits = fixture.come('a');
        const auto next = fixture.come('b');
        fixture.finish(waits);
        const auto last = fixture.come('c');
        CHECK(fixture.had == "ab");
        fixture.finish(next);
        fixture.finish(last);
    }
    CHECK(fixture.had == "abc");
}

TEST_CASE("as many have a turn at once as there are", "[support][turns]") {
    TurnsFixture fixture;
    fixture.turns = std::make_shared<Turns>(*fixture.io, 2);
    const auto first = fixture.come('a');
    const auto second = fixture.come('b');
    const auto third = fixture.come('c');
    const auto fourth = fixture.come('d');
    CHECK(fixture.had == "ab");
    fixture.finish(second);
    CHECK(fixture.had == "abc");
    fixture.finish(third);
    CHECK(fixture.had == "abcd");
    fixture.finish(first);
    fixture.finish(fourth);
    const auto fifth = fixture.come('e');
    const auto sixth = fixture.come('f');
    const auto seventh = fixture.come('g');
    CHECK(fixture.had == "abcdef");  // no turn was lost, and none won
    for (const auto& end : {fifth, sixth, seventh}) {
        fixture.finish(end);
    }
}
