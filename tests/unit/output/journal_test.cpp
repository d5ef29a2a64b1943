// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/output/journal.hpp"

#include "protocol/limits.hpp"
#include "protocol/message.hpp"

#include <catch2/catch.hpp>

#include <string>

using cellkeep::protocol::Channel;
using cellkeep::protocol::make_header;
using cellkeep::protocol::Message;
using cellkeep::session::OutputJournal;

namespace {

Message stream(const std::string& text) {
    return Message::make(
        Channel::kIopub,
        make_header("stream", "s", "u"),
        nlohmann::json::object(),
        {{"name", "stdout"}, {"text", text}});
}

}  // namespace

TEST_CASE("sequences start at 1 and have no gaps", "[session][journal]") {
    OutputJournal journal(10, 1 << 20U);
    CHECK(journal.last_sequence() == 0);
    CHECK(journal.append(stream("a")).sequence == 1);
    CHECK(journal.append(stream("b")).sequence == 2);
    CHECK(journal.last_sequence() == 2);
}

TEST_CASE("a reader that asks since N gets what came after N, in order", "[session][journal]") {
    OutputJournal journal(10, 1 << 20U);
    for (const char* text : {"a", "b", "c"}) {
        journal.append(stream(text));
    }
    const auto all = journal.since(0);
    REQUIRE(all.entries.size() == 3);
    CHECK(all.missed == 0);
    const auto rest = journal.since(2);
    REQUIRE(rest.entries.size() == 1);
    CHECK(rest.entries[0].sequence == 3);
    CHECK(rest.entries[0].message.parse_content().value()["text"] == "c");
    CHECK(journal.since(3).entries.empty());
    CHECK(journal.since(99).entries.empty());
    CHECK(journal.since(99).missed == 0);
}

TEST_CASE(
    "at the message bound nothing is dropped, one past it the oldest is, and is counted",
    "[session][journal]") {
    OutputJournal journal(3, 1 << 20U);
    for (int i = 0; i < 3; ++i) {
        journal.append(stream(std::to_string(i)));
    }
    CHECK(journal.dropped() == 0);
    CHECK(journal.size() == 3);
    journal.append(stream("3"));
    CHECK(journal.dropped() == 1);
    CHECK(journal.size() == 3);
    const auto replay = journal.since(0);
    CHECK(replay.missed == 1);
    CHECK(replay.entries.front().sequence == 2);
    CHECK(journal.since(1).missed == 0);
}

TEST_CASE("the byte bound holds, also against one message larger than it", "[session][journal]") {
    const std::size_t one = stream("xxxx").frame().size();
    OutputJournal journal(100, 2 * one);
    journal.append(stream("aaaa"));
    journal.append(stream("bbbb"));
    CHECK(journal.dropped() == 0);
    journal.append(stream("cccc"));
    CHECK(journal.dropped() == 1);
    CHECK(journal.bytes() <= 2 * one);
    journal.append(stream(std::string(4 * one, 'x')));
    CHECK(journal.size() == 0);
    CHECK(journal.bytes() == 0);
    CHECK(journal.dropped() == 4);
    CHECK(journal.since(0).missed == 4);
}

TEST_CASE("a session's journal is bounded by the table of limits", "[session][journal]") {
    OutputJournal journal(
        cellkeep::limits::kJournalMessagesMax, cellkeep::limits::kJournalBytesMax);
    const Message message = stream("x");
    for (std::size_t i = 0; i < cellkeep::limits::kJournalMessagesMax + 1; ++i) {
        journal.append(message);
    }
    CHECK(journal.size() == cellkeep::limits::kJournalMessagesMax);
    CHECK(journal.dropped() == 1);
}

TEST_CASE("a journal goes on where another program left it", "[session][journal]") {
    OutputJournal before(10, 1 << 20U);
    for (const char* text : {"a", "b", "c", "d"}) {
        before.append(stream(text));
    }
    const std::size_t one = before.since(3).entries[0].message.frame().size();
    std::size_t kept = 0;
    std::size_t bytes = 0;
    SECTION("nothing fits") {
        bytes = one - 1;
    }
    SECTION("two fit, to the byte") {
        bytes = 2 * one;
        kept = 2;
    }
    SECTION("all fit") {
        bytes = 1 << 20U;
        kept = 4;
    }
    const auto newest = before.newest(bytes);
    REQUIRE(newest.size() == kept);
    OutputJournal after(10, 1 << 20U);
    after.go_on(before.last_sequence(), newest);
    CHECK(after.last_sequence() == 4);
    CHECK(after.since(0).missed == 4 - kept);
    CHECK(after.dropped() == 4 - kept);
    CHECK(after.append(stream("e")).sequence == 5);
    const auto rest = after.since(4 - kept);
    REQUIRE(rest.entries.size() == kept + 1);
    CHECK(rest.entries[0].sequence == 5 - kept);
    CHECK(rest.entries.back().message.parse_content().value()["text"] == "e");
}
