// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/event_journal.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <vector>

using cellkeep::protocol::TextPieces;
using cellkeep::session::EventJournal;
namespace limits = cellkeep::limits;

TEST_CASE("events are numbered from one and given in order", "[session][events]") {
    EventJournal journal(10, 1 << 20);
    CHECK_FALSE(journal.after(0).event);
    journal.append("a", TextPieces("{}"));
    journal.append("b", TextPieces("{}"));
    CHECK(journal.after(0).event->type == "a");
    CHECK(journal.after(0).event->sequence == 1);
    CHECK(journal.after(1).event->type == "b");
    CHECK_FALSE(journal.after(2).event);
    CHECK_FALSE(journal.after(99).event);
}

TEST_CASE(
    "past the count the oldest events go, and a reader that is behind learns how many",
    "[session][events]") {
    CHECK(limits::kExecutionEventsMax == 10'000);
    EventJournal journal(3, 1 << 20);
    for (int i = 0; i < 3; ++i) {
        journal.append("e", TextPieces("{}"));
    }
    CHECK(journal.after(0).missed == 0);
    journal.append("e", TextPieces("{}"));
    CHECK(journal.size() == 3);
    CHECK(journal.after(0).missed == 1);
    CHECK(journal.after(0).event->sequence == 2);
    CHECK(journal.after(1).missed == 0);
}

TEST_CASE("past the bytes the oldest go, never the newest", "[session][events]") {
    CHECK(limits::kExecutionEventsBytesMax == 8U << 20U);
    EventJournal measure;
    measure.append("e", TextPieces(std::string(100, 'x')));
    const std::size_t one = measure.bytes();
    EventJournal journal(100, 2 * one);
    journal.append("e", TextPieces(std::string(100, 'x')));
    journal.append("e", TextPieces(std::string(100, 'x')));
    CHECK(journal.size() == 2);
    journal.append("e", TextPieces(std::string(101, 'x')));
    CHECK(journal.size() == 1);
    CHECK(journal.after(0).missed == 2);
    journal.append("e", TextPieces(std::string(1000, 'x')));
    CHECK(journal.size() == 1);
    CHECK(journal.after(3).event->sequence == 4);
}

TEST_CASE("after forget() only the last event is left", "[session][events]") {
    EventJournal journal;
    for (int i = 0; i < 5; ++i) {
        journal.append("e", TextPieces("{}"));
    }
    journal.forget();
    CHECK(journal.size() == 1);
    CHECK(journal.after(0).missed == 4);
    CHECK(journal.last_sequence() == 5);
}

TEST_CASE("events go on where another program left them", "[session][events]") {
    EventJournal before(10, 1 << 20);
    for (const char* type : {"a", "b", "c"}) {
        before.append(type, TextPieces("{}"));
    }
    std::size_t bytes = 0;
    std::size_t kept = 0;
    SECTION("the newest always stays") {
        kept = 1;
    }
    SECTION("as many as fit, to the byte") {
        bytes = 4;
        kept = 2;
    }
    SECTION("all") {
        bytes = 100;
        kept = 3;
    }
    EventJournal after(10, 1 << 20);
    std::vector<cellkeep::session::ExecutionEvent> newest;
    for (const auto& event : before.newest(bytes)) {
        newest.push_back(*event);
    }
    REQUIRE(newest.size() == kept);
    after.go_on(std::move(newest));
    CHECK(after.size() == kept);
    CHECK(after.last_sequence() == 3);
    CHECK(after.after(0).missed == 3 - kept);
    CHECK(after.after(2).event->type == "c");
    after.append("d", TextPieces("{}"));
    CHECK(after.after(3).event->sequence == 4);
}
