// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/channels/channels_replay.hpp"

#include "tests/unit/jupyter/journal_session.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

namespace cellkeep::jupyter::test {
namespace {

Texts running(const JournalSession& session) {
    Texts texts;
    for (const session::OutputEntry& entry : select_running(session.journal())) {
        texts.push_back(text_of(entry.message));
    }
    return texts;
}

TEST_CASE(
    "the output of running requests is replayed, of finished ones it is not",
    "[channels][replay]") {
    JournalSession session;
    CHECK(running(session).empty());
    (void)session.say_status("busy", "first");
    (void)session.say("of the first", "first");
    (void)session.say_status("idle", "first");
    CHECK(running(session).empty());
    (void)session.say_status("busy", "second");
    (void)session.say_type("execute_input", {{"code", "x"}}, "second");
    (void)session.say("of the second", "second");
    (void)session.say("late, of the first", "first");
    CHECK(running(session) == Texts{"busy", "execute_input", "of the second"});
}

TEST_CASE("a request whose beginning the journal has dropped still runs", "[channels][replay]") {
    JournalSession session(3);
    (void)session.say_status("busy", "cell");
    session.say_many(5, "cell");
    CHECK(running(session) == Texts{"2", "3", "4"});
}

TEST_CASE("comm messages and those without a parent are not replayed", "[channels][replay]") {
    JournalSession session;
    (void)session.say_type("comm_open", {{"comm_id", "c"}}, "cell");
    (void)session.say_type("comm_msg", {{"comm_id", "c"}}, "cell");
    (void)session.say_status("restarting", "");
    (void)session.say("text", "cell");
    CHECK(running(session) == Texts{"text"});
}

TEST_CASE("a status whose content is not JSON does not count as idle", "[channels][replay]") {
    JournalSession session;
    session.publish(protocol::Message::create({.channel = protocol::Channel::kIopub,
                                               .header = R"({"msg_id":"m","msg_type":"status"})",
                                               .parent_header = R"({"msg_id":"cell"})",
                                               .metadata = "{}",
                                               .content = "idle",
                                               .buffers = {}})
                        .value());
    CHECK(select_running(session.journal()).size() == 1);
}

TEST_CASE("a message is found by its id as long as it is kept", "[channels][replay]") {
    JournalSession session(3);
    const std::string first = session.say("0");
    const std::string second = session.say("1");
    CHECK(find_sequence(session.journal(), first) == 1U);
    CHECK(find_sequence(session.journal(), second) == 2U);
    CHECK_FALSE(find_sequence(session.journal(), "unknown").has_value());
    session.say_many(2);
    CHECK_FALSE(find_sequence(session.journal(), first).has_value());
    CHECK(find_sequence(session.journal(), second) == 2U);
}

}  // namespace
}  // namespace cellkeep::jupyter::test
