// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/channels/channels_subscription.hpp"

#include "tests/unit/jupyter/journal_session.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <vector>

namespace cellkeep::jupyter::test {
namespace {

using Catch::Matchers::Contains;

/// A subscription whose journal keeps few messages.
struct SubscriptionFixture {
    explicit SubscriptionFixture(
        std::size_t journal_messages = 10,
        std::chrono::milliseconds stall = std::chrono::minutes(1),
        std::chrono::milliseconds hold = std::chrono::minutes(1))
        : session(std::make_shared<JournalSession>(journal_messages)),
          subscription(std::make_shared<ChannelsSubscription>(
              io, session, log, SubscriptionConfig{stall, hold})) {
        subscription->begin_now({});
        enter();
    }
    std::uint64_t enter() {
        attachment = subscription->attach([this] { ++wakes; });
        return attachment;
    }
    Texts take(std::size_t most = SIZE_MAX) {
        Texts texts;
        while (texts.size() < most) {
            const auto message = subscription->next(attachment);
            if (!message.has_value()) {
                break;
            }
            texts.push_back(text_of(*message));
        }
        return texts;
    }
    void run() {
        io.restart();
        (void)io.run();
    }

    boost::asio::io_context io{1};
    std::shared_ptr<JournalSession> session;
    std::shared_ptr<PeerLog> log = std::make_shared<PeerLog>("ses_1", nullptr, "channels");
    std::shared_ptr<ChannelsSubscription> subscription;
    std::uint64_t attachment = 0;
    int wakes = 0;
};

Texts numbers(std::size_t from, std::size_t to) {
    Texts texts;
    for (std::size_t i = from; i < to; ++i) {
        texts.push_back(std::to_string(i));
    }
    return texts;
}

TEST_CASE("output comes in order, and each message wakes the sender", "[channels][subscription]") {
    SubscriptionFixture f;
    f.session->say_many(3);
    CHECK(f.wakes == 3);
    CHECK(f.take() == numbers(0, 3));
    CHECK(f.take().empty());
}

TEST_CASE("an answer stands behind the output that was before it", "[channels][subscription]") {
    SubscriptionFixture f;
    (void)f.session->say("before");
    f.subscription->deliver(make_reply("answer"));
    (void)f.session->say("after");
    CHECK(f.take() == Texts{"before", "answer", "after"});
}

TEST_CASE("an answer on control goes before everything", "[channels][subscription]") {
    SubscriptionFixture f;
    (void)f.session->say("output");
    f.subscription->deliver(make_reply("shell"));
    f.subscription->deliver(make_reply("first", protocol::Channel::kControl));
    f.subscription->deliver(make_reply("second", protocol::Channel::kControl));
    CHECK(f.take() == Texts{"first", "second", "output", "shell"});
}

TEST_CASE("a client far behind the journal loses nothing", "[channels][subscription]") {
    SubscriptionFixture f;
    f.session->say_many(limits::kChannelsWaitingMessagesMax);
    CHECK(f.take() == numbers(0, limits::kChannelsWaitingMessagesMax));
    CHECK(f.subscription->lost() == 0);
}

TEST_CASE("when half of the allowed messages wait, the session waits", "[channels][subscription]") {
    SubscriptionFixture f;
    constexpr std::size_t kHalf = limits::kChannelsWaitingMessagesMax / 2;
    f.session->say_many(kHalf + 10 - 1);
    CHECK_FALSE(f.subscription->congested());
    (void)f.session->say("one more");
    CHECK(f.subscription->congested());
    CHECK(f.session->resumed == 0);
    (void)f.take(limits::kChannelsWaitingMessagesMax / 8);
    CHECK(f.subscription->congested());
    (void)f.take(1);
    CHECK_FALSE(f.subscription->congested());
    CHECK(f.session->resumed == 1);
}

TEST_CASE("bytes count as messages do, and one of any size passes", "[channels][subscription]") {
    SubscriptionFixture f;
    const auto large = FakeSession::make_bytes(0, limits::kChannelsWaitingBytesMax / 4);
    f.session->publish(large);
    CHECK_FALSE(f.subscription->congested());
    f.session->publish(large);
    CHECK(f.subscription->congested());
    CHECK(f.take().size() == 2);
    CHECK_FALSE(f.subscription->congested());
    f.session->publish(FakeSession::make_bytes(0, limits::kChannelsWaitingBytesMax + 1));
    CHECK(f.subscription->congested());
    CHECK(f.take().size() == 1);
    CHECK(f.subscription->lost() == 0);
}

TEST_CASE(
    "past every bound the oldest messages are lost and the client gets a notice",
    "[channels][subscription]") {
    SubscriptionFixture f;
    f.session->say_many(limits::kChannelsWaitingMessagesMax + 10);
    CHECK(f.subscription->lost() == 0);
    (void)f.session->say("one too many", "cell");
    CHECK(f.subscription->lost() == 1);
    CHECK(f.log->count(PeerEvent::kOutputDropped) == 1);
    const auto notice = f.subscription->next(f.attachment);
    REQUIRE(notice.has_value());
    CHECK(notice->header().msg_type == "stream");
    CHECK(notice->header().session == "kernel");
    CHECK(notice->parent().msg_id == "request");
    CHECK(notice->parse_content().value()["name"] == "stderr");
    CHECK_THAT(text_of(*notice), Contains("1 output messages are missing here"));
    CHECK(f.take(2) == Texts{"1", "2"});
}

TEST_CASE("a client that takes nothing is left behind, once", "[channels][subscription]") {
    SubscriptionFixture f(10, std::chrono::milliseconds(1));
    f.session->say_many(limits::kChannelsWaitingMessagesMax / 2 + 10);
    REQUIRE(f.subscription->congested());
    f.run();
    CHECK_FALSE(f.subscription->congested());
    CHECK(f.session->resumed == 1);
    CHECK(f.subscription->lost() == limits::kChannelsWaitingMessagesMax / 2);
    // From here on the session does not wait for this client until it has caught up.
    f.session->say_many(limits::kChannelsWaitingMessagesMax);
    CHECK_FALSE(f.subscription->congested());
    CHECK(f.subscription->waiting() == 10);
    const Texts rest = f.take();
    REQUIRE(rest.size() == 11);
    CHECK_THAT(rest.front(), Contains(std::to_string(f.subscription->lost())));
    f.session->say_many(limits::kChannelsWaitingMessagesMax / 2 + 10);
    CHECK(f.subscription->congested());
}

TEST_CASE(
    "messages without proof of receipt are sent again, in order", "[channels][subscription]") {
    SubscriptionFixture f;
    f.session->say_many(2);
    f.subscription->deliver(make_reply("answer"));
    (void)f.session->say("2");
    CHECK(f.take() == Texts{"0", "1", "answer", "2"});
    f.subscription->acknowledge(f.attachment, 1);
    f.subscription->detach(f.attachment);
    (void)f.session->say("3");
    CHECK(f.enter() == 2);
    CHECK(f.take() == Texts{"1", "answer", "2", "3"});
    f.subscription->acknowledge(f.attachment, 4);
    f.subscription->detach(f.attachment);
    (void)f.enter();
    CHECK(f.take().empty());
}

TEST_CASE("a message for one attachment does not reach the next", "[channels][subscription]") {
    SubscriptionFixture f;
    f.subscription->notify(make_reply("sent"));
    CHECK(f.take() == Texts{"sent"});
    f.subscription->notify(make_reply("not even sent"));
    (void)f.enter();
    CHECK(f.take().empty());
}

TEST_CASE("an attachment that was replaced gets and proves nothing", "[channels][subscription]") {
    SubscriptionFixture f;
    (void)f.session->say("0");
    (void)f.take();
    const std::uint64_t old = f.attachment;
    (void)f.enter();
    CHECK_FALSE(f.subscription->next(old).has_value());
    f.subscription->acknowledge(old, 1);
    f.subscription->detach(old);
    CHECK(f.subscription->attached());
    CHECK(f.take() == Texts{"0"});
}

TEST_CASE("a client that was away gets what the journal keeps", "[channels][subscription]") {
    SubscriptionFixture f(10, std::chrono::minutes(1), std::chrono::milliseconds(1));
    f.session->say_many(3);
    CHECK(f.take(1) == Texts{"0"});
    f.subscription->acknowledge(f.attachment, 1);
    f.subscription->detach(f.attachment);
    f.run();
    REQUIRE(f.subscription->parked());
    CHECK(f.session->observers.empty());
    f.subscription->deliver(make_reply("while away"));
    (void)f.session->say("3");
    (void)f.enter();
    CHECK(f.take() == Texts{"1", "2", "while away", "3"});
    CHECK(f.subscription->lost() == 0);
}

TEST_CASE(
    "a client that was away too long gets a notice of what it lost", "[channels][subscription]") {
    SubscriptionFixture f(10, std::chrono::minutes(1), std::chrono::milliseconds(1));
    f.subscription->detach(f.attachment);
    f.run();
    f.session->say_many(25);
    (void)f.enter();
    CHECK(f.subscription->lost() == 15);
    Texts texts = f.take();
    REQUIRE(texts.size() == 11);
    CHECK_THAT(texts.front(), Contains("15 output messages"));
    texts.erase(texts.begin());
    CHECK(texts == numbers(15, 25));
}

TEST_CASE(
    "a client that left delays the session no longer than its hold time",
    "[channels][subscription]") {
    SubscriptionFixture f(10, std::chrono::minutes(1), std::chrono::milliseconds(1));
    f.subscription->detach(f.attachment);
    f.session->say_many(limits::kChannelsWaitingMessagesMax / 2 + 10);
    CHECK(f.subscription->congested());
    f.run();
    CHECK_FALSE(f.subscription->congested());
    CHECK(f.session->resumed == 1);
    CHECK(f.session->observers.empty());
}

TEST_CASE("answers to a client that is there are never dropped", "[channels][subscription]") {
    SubscriptionFixture f;
    for (std::size_t i = 0; i < limits::kChannelsWaitingMessagesMax - 1; ++i) {
        f.subscription->deliver(make_reply("r"));
    }
    CHECK_FALSE(f.subscription->full());
    f.subscription->deliver(make_reply("r"));
    CHECK(f.subscription->full());
    f.subscription->deliver(make_reply("last"));
    CHECK(f.take().size() == limits::kChannelsWaitingMessagesMax + 1);
    CHECK_FALSE(f.subscription->full());
}

TEST_CASE("answers to a client that is away are bounded", "[channels][subscription]") {
    SubscriptionFixture f;
    f.subscription->detach(f.attachment);
    for (std::size_t i = 0; i < limits::kChannelsWaitingMessagesMax + 5; ++i) {
        f.subscription->deliver(make_reply(std::to_string(i)));
    }
    CHECK(f.log->count(PeerEvent::kUndeliverable) == 6);
    (void)f.enter();
    CHECK(f.take(1) == Texts{"6"});
}

TEST_CASE("messages sent without proof of receipt are bounded", "[channels][subscription]") {
    SubscriptionFixture f;
    f.session->say_many(10);
    CHECK(f.take() == numbers(0, 10));
    for (std::size_t i = 0; i < limits::kChannelsUnprovenMessagesMax - 10; ++i) {
        f.subscription->deliver(make_reply("r"));
        (void)f.subscription->next(f.attachment);
    }
    f.subscription->deliver(make_reply("one more"));
    (void)f.subscription->next(f.attachment);
    (void)f.enter();
    CHECK(f.take(2) == numbers(1, 3));
    // Bytes are bounded as well; the last message always counts.
    f.subscription->acknowledge(f.attachment, limits::kChannelsUnprovenMessagesMax);
    (void)f.take();
    f.session->publish(FakeSession::make_bytes(0, limits::kChannelsUnprovenBytesMax + 1));
    CHECK(f.take().size() == 1);
    (void)f.enter();
    CHECK(f.take().size() == 1);
}

TEST_CASE(
    "a client that asks for a position in the journal begins there", "[channels][subscription]") {
    SubscriptionFixture f;
    f.session->say_many(5);
    f.subscription->begin_after(3);
    (void)f.session->say("5");
    CHECK(f.take() == numbers(3, 6));
    CHECK(f.session->observers.size() == 1);
}

TEST_CASE("the journal's bounds do not hold back a new client's past", "[channels][subscription]") {
    SubscriptionFixture f;
    f.session->say_many(10);
    f.subscription->begin_now(f.session->journal().since(7).entries);
    f.session->say_many(1);
    CHECK(f.take() == Texts{"7", "8", "9", "0"});
}

TEST_CASE("the waits of the default configuration are bounded", "[channels][subscription]") {
    CHECK(SubscriptionConfig{}.stall_max == limits::kChannelsStallMax);
    CHECK(SubscriptionConfig{}.hold_max == limits::kChannelsHoldMax);
}

}  // namespace
}  // namespace cellkeep::jupyter::test
