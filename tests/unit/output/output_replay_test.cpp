// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/output/output_replay.hpp"

#include "protocol/limits.hpp"

#include <catch2/catch.hpp>

#include <string>

using cellkeep::ErrorCode;
using cellkeep::protocol::Channel;
using cellkeep::protocol::Header;
using cellkeep::protocol::make_header;
using cellkeep::protocol::Message;
using cellkeep::session::OutputJournal;
using cellkeep::session::parse_replay_question;
using cellkeep::session::ReplayQuestion;
using cellkeep::session::RequestPlace;
using nlohmann::json;
namespace limits = cellkeep::limits;

namespace {

/// Publishes messages with one request as parent.
class Speaker {
 public:
    Speaker(OutputJournal& journal, const std::string& msg_id) : journal_(journal) {
        parent_ = {{"msg_id", msg_id}, {"msg_type", "execute_request"}, {"session", "page"}};
    }
    void say(const std::string& type, const json& content) {
        journal_.append(
            Message::make(Channel::kIopub, make_header(type, "s", "u"), parent_, content));
    }
    void status(const std::string& state) { say("status", {{"execution_state", state}}); }
    void print(const std::string& text) { say("stream", {{"name", "stdout"}, {"text", text}}); }

 private:
    OutputJournal& journal_;
    json parent_;
};

RequestPlace nowhere(std::string_view) {
    return RequestPlace::kNotHere;
}

json replay_of(
    const ReplayQuestion& asked,
    const OutputJournal& journal,
    const std::function<RequestPlace(std::string_view)>& place) {
    return cellkeep::protocol::parse_json(
               cellkeep::session::make_replay(asked, journal, place).content, "replay")
        .value();
}

std::string replay_texts(const json& replay) {
    std::string all;
    for (const json& message : replay["messages"]) {
        all += message["content"].value("text", "");
    }
    return all;
}

Message question(const json& content) {
    return Message::make(
        Channel::kControl,
        make_header("cellkeep_replay_request", "page", "u"),
        json::object(),
        content);
}

}  // namespace

TEST_CASE(
    "a replay has the whole output of its request in order and no other", "[session][replay]") {
    OutputJournal journal(100, 1 << 20U);
    Speaker mine(journal, "mine");
    Speaker other(journal, "other");
    mine.status("busy");
    other.print("no");
    mine.print("a");
    mine.print("b");
    mine.say("comm_msg", {{"comm_id", "c"}});
    mine.status("idle");
    const json replay = replay_of({{"mine"}, 0}, journal, nowhere);
    CHECK(replay_texts(replay) == "ab");
    CHECK(replay["messages"].size() == 4);
    CHECK(replay["messages"][1]["parent_header"]["msg_id"] == "mine");
    CHECK(replay["messages"][1]["header"]["msg_type"] == "stream");
    CHECK(replay["states"] == json{{"mine", "ended"}});
    CHECK(replay["truncated"].empty());
    CHECK(replay["next"].is_null());
    CHECK(replay["status"] == "ok");
}

TEST_CASE("a replay says where each request is", "[session][replay]") {
    OutputJournal journal(100, 1 << 20U);
    Speaker(journal, "running").status("busy");
    const auto place = [](std::string_view id) {
        return id == "running"  ? RequestPlace::kRunning
               : id == "queued" ? RequestPlace::kWaiting
                                : RequestPlace::kNotHere;
    };
    const json replay = replay_of({{"running", "queued", "never"}, 0}, journal, place);
    CHECK(
        replay["states"] ==
        json{{"running", "running"}, {"queued", "queued"}, {"never", "unknown"}});
    CHECK(replay["truncated"].empty());
}

TEST_CASE("a replay says when the journal has let go of its beginning", "[session][replay]") {
    OutputJournal journal(3, 1 << 20U);
    Speaker mine(journal, "mine");
    mine.status("busy");
    for (const char* text : {"a", "b", "c"}) {
        mine.print(text);
    }
    const json replay = replay_of({{"mine"}, 0}, journal, nowhere);
    CHECK(replay_texts(replay) == "abc");
    CHECK(replay["truncated"] == json{"mine"});
}

TEST_CASE("a long replay comes in parts that fit together", "[session][replay]") {
    OutputJournal journal(limits::kJournalMessagesMax, limits::kJournalBytesMax);
    Speaker mine(journal, "mine");
    mine.status("busy");
    const std::string half(limits::kReplayBytesMax / 2, 'x');
    const std::string whole(limits::kReplayBytesMax + 1, 'y');
    mine.print(half);
    mine.print(whole);  // alone past the bound, and still it goes
    mine.print("z");
    mine.status("idle");
    std::string all;
    std::size_t parts = 0;
    ReplayQuestion asked{{"mine"}, 0};
    for (json next = 0; !next.is_null(); ++parts) {
        asked.after = next.get<std::uint64_t>();
        const json replay = replay_of(asked, journal, nowhere);
        REQUIRE_FALSE(replay["messages"].empty());
        CHECK(replay["states"]["mine"] == "ended");
        CHECK(replay["truncated"].empty());
        all += replay_texts(replay);
        next = replay["next"];
    }
    CHECK(parts == 3);
    CHECK(all == half + whole + "z");
}

TEST_CASE("a replay request that is not one is refused by name", "[session][replay]") {
    const auto bad = GENERATE(
        json::object(),
        json{{"msg_ids", "one"}},
        json{{"msg_ids", {{"a", 1}}}},
        json{{"msg_ids", {1}}},
        json{{"msg_ids", {"a"}}, {"after", -1}},
        json{{"msg_ids", {"a"}}, {"after", 1.5}},
        json{{"msg_ids", {"a"}}, {"after", "1"}});
    const auto parsed = parse_replay_question(question(bad));
    REQUIRE(parsed.has_error());
    CHECK(parsed.error().code() == ErrorCode::kInvalidArgument);
}

TEST_CASE(
    "a replay request may name kReplayRequestsMax requests and no more", "[session][replay]") {
    json ids = json::array();
    for (std::size_t i = 0; i < limits::kReplayRequestsMax; ++i) {
        ids.push_back(std::to_string(i));
    }
    const auto parsed = parse_replay_question(question({{"msg_ids", ids}, {"after", 7}}));
    REQUIRE(parsed.has_value());
    CHECK(parsed.value().requests.size() == limits::kReplayRequestsMax);
    CHECK(parsed.value().after == 7);
    ids.push_back("one more");
    const auto refused = parse_replay_question(question({{"msg_ids", ids}}));
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kLimitExceeded);
}
