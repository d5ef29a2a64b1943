// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/zmq/iopub_publisher.hpp"

#include "protocol/limits.hpp"
#include "tests/unit/jupyter/zmq_client.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

using namespace cellkeep;
using namespace cellkeep::jupyter;
using namespace cellkeep::jupyter::test;
using protocol::Channel;

namespace {

void subscribe(Stage& stage, ZmqTestClient& client) {
    client.subscribe();
    REQUIRE(stage.receive(client, Channel::kIopub).header().msg_type == "iopub_welcome");
}

/// Subscribes with a small receive buffer, so that unread messages wait at the publisher.
void subscribe_with_little_room(Stage& stage, ZmqTestClient& client) {
    client.iopub.set(zmq::sockopt::rcvhwm, 1);
    client.iopub.disconnect(client.info.endpoint(client.info.iopub_port));
    client.iopub.connect(client.info.endpoint(client.info.iopub_port));
    subscribe(stage, client);
}

/// A session that prints `count` numbered messages and stops whenever the front is congested.
class Printer {
 public:
    Printer(FakeSession& session, std::size_t count, std::size_t padding)
        : session_(session), count_(count), padding_(padding) {
        session_.on_resume = [this] { run(); };
    }
    void run() {
        while (next_ < count_ && !session_.congested()) {
            session_.publish_bytes(next_++, padding_);
        }
    }
    std::size_t printed() const { return next_; }

 private:
    FakeSession& session_;
    std::size_t count_;
    std::size_t padding_;
    std::size_t next_ = 0;
};

/// Appends the numbers of all stream messages that have arrived. Reads the content's frame
/// directly:
/// {"n":N}.
void read_numbers(ZmqTestClient& client, std::vector<std::size_t>& numbers) {
    while (const std::optional<Frames> frames = try_receive_frames(client.iopub)) {
        // topic, delimiter, signature, header, parent header, metadata, content, buffers
        if (frames->at(0).ends_with(".stream")) {
            numbers.push_back(std::stoul(frames->at(6).substr(5)));
        }
    }
}

bool is_complete(const std::vector<std::size_t>& numbers, std::size_t count) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        if (numbers[i] != i) {
            return false;
        }
    }
    return numbers.size() == count;
}

constexpr std::chrono::hours kForever{1};

}  // namespace

TEST_CASE("a subscription is greeted as JEP 65 says", "[jupyter][iopub]") {
    Stage stage;
    ZmqTestClient client(stage.context, stage.session->connection_file);
    for (const std::string topic : {"", "kernel.x.stream"}) {
        client.subscribe(topic);
        const protocol::Message welcome = stage.receive(client, Channel::kIopub);
        CHECK(welcome.header().msg_type == "iopub_welcome");
        CHECK(client.last_topic == topic);
        CHECK(welcome.parent_header_json() == "{}");
        CHECK(welcome.parse_content().value() == nlohmann::json{{"subscription", topic}});
    }
}

TEST_CASE("a second client with the same subscription is greeted too", "[jupyter][iopub]") {
    Stage stage;
    ZmqTestClient first(stage.context, stage.session->connection_file);
    ZmqTestClient second(stage.context, stage.session->connection_file);
    subscribe(stage, first);
    subscribe(stage, second);
}

TEST_CASE("a topic at the bound is greeted, a longer one is not", "[jupyter][iopub]") {
    Stage stage;
    ZmqTestClient client(stage.context, stage.session->connection_file);
    client.subscribe(std::string(limits::kHeaderFieldBytesMax + 1, 't'));
    client.subscribe(std::string(limits::kHeaderFieldBytesMax, 't'));
    stage.receive(client, Channel::kIopub);
    CHECK(client.last_topic.size() == limits::kHeaderFieldBytesMax);
    CHECK(stage.count(PeerEvent::kRejected) == 1);
}

TEST_CASE(
    "limits::kZmqSubscriptionBytesMax is the longest subscription that ZeroMQ takes",
    "[jupyter][iopub][limits]") {
    // ZMTP 3.1 sends a subscription as a command: its name with a length, and the topic.
    constexpr std::size_t kCommandBytes = 1 + std::string_view("SUBSCRIBE").size();
    constexpr std::size_t kTopicBytesMax = limits::kZmqSubscriptionBytesMax - kCommandBytes;
    Stage stage;
    ZmqTestClient client(stage.context, stage.session->connection_file);
    client.subscribe(std::string(kTopicBytesMax, 't'));
    client.subscribe("short");
    stage.receive(client, Channel::kIopub);
    CHECK(client.last_topic == "short");
    CHECK(stage.count(PeerEvent::kRejected) == 1);

    ZmqTestClient hostile(stage.context, stage.session->connection_file);
    zmq::socket_t events(stage.context, zmq::socket_type::pair);
    REQUIRE(
        zmq_socket_monitor(hostile.iopub.handle(), "inproc://hostile", ZMQ_EVENT_DISCONNECTED) ==
        0);
    events.connect("inproc://hostile");
    hostile.subscribe(std::string(kTopicBytesMax + 1, 't'));
    CHECK(stage.run_until([&] { return try_receive_frames(events).has_value(); }));
    // Before nobody receives them any more (~ConnectionWatch()).
    REQUIRE(zmq_socket_monitor(hostile.iopub.handle(), nullptr, 0) == 0);
    CHECK(stage.count(PeerEvent::kRejected) == 1);
    CHECK_FALSE(hostile.try_receive(Channel::kIopub).has_value());
}

TEST_CASE(
    "output carries ipykernel's topic, its parent and a right signature", "[jupyter][iopub]") {
    Stage stage;
    ZmqTestClient client(stage.context, stage.session->connection_file);
    subscribe(stage, client);
    stage.session->publish("status", {{"execution_state", "busy"}});
    const protocol::Message status = stage.receive(client, Channel::kIopub);
    CHECK(client.last_topic == "kernel." + stage.session->info().kernel_id + ".status");
    CHECK(status.parent().msg_type == "execute_request");
}

TEST_CASE("output before the first subscription is not sent, after it all is", "[jupyter][iopub]") {
    Stage stage;
    ZmqTestClient client(stage.context, stage.session->connection_file);
    for (std::size_t i = 0; i < 2 * limits::kZmqWaitingMessagesMax; ++i) {
        stage.session->publish("status", {{"execution_state", "early"}});
    }
    CHECK_FALSE(stage.session->congested());
    subscribe(stage, client);
    stage.session->publish("status", {{"execution_state", "busy"}});
    const protocol::Message next = stage.receive(client, Channel::kIopub);
    CHECK(next.parse_content().value()["execution_state"] == "busy");
    CHECK(stage.count(PeerEvent::kOutputDropped) == 0);
}

TEST_CASE("unsubscribing stops the output", "[jupyter][iopub]") {
    Stage stage;
    ZmqTestClient client(stage.context, stage.session->connection_file);
    subscribe(stage, client);
    client.iopub.set(zmq::sockopt::unsubscribe, "");
    client.subscribe("none of these");
    stage.receive(client, Channel::kIopub);
    stage.session->publish("status", {{"execution_state", "busy"}});
    client.subscribe("");
    const protocol::Message next = stage.receive(client, Channel::kIopub);
    CHECK(next.header().msg_type == "iopub_welcome");
}

TEST_CASE("100,000 messages reach a subscriber that reads late, all in order", "[jupyter][iopub]") {
    constexpr std::size_t kMessages = 100'000;
    ZmqFrontConfig config;
    config.stall_max = kForever;
    Stage stage(config);
    ZmqTestClient client(stage.context, stage.session->connection_file);
    subscribe(stage, client);
    Printer printer(*stage.session, kMessages, 100);
    printer.run();
    // The client begins to read only after the session had to stop for it.
    REQUIRE(stage.session->congested());
    REQUIRE(printer.printed() < kMessages);
    std::vector<std::size_t> numbers;
    while (numbers.size() < kMessages) {
        const std::size_t before = numbers.size();
        REQUIRE(stage.run_until([&] {
            read_numbers(client, numbers);
            return numbers.size() > before;
        }));
    }
    CHECK(is_complete(numbers, kMessages));
    CHECK(stage.count(PeerEvent::kSubscriberStepped) == 0);
    CHECK(stage.count(PeerEvent::kOutputDropped) == 0);
}

TEST_CASE("one that stalls beyond the bound loses, the others lose nothing", "[jupyter][iopub]") {
    constexpr std::size_t kMessages = 5'000;
    ZmqFrontConfig config;
    config.high_water_mark = 100;
    // A busy machine keeps the one that reads waiting, too.
    config.stall_max = std::chrono::milliseconds(2000);
    Stage stage(config);
    ZmqTestClient reads(stage.context, stage.session->connection_file);
    ZmqTestClient stalls(stage.context, stage.session->connection_file);
    subscribe(stage, stalls);
    subscribe(stage, reads);
    Printer printer(*stage.session, kMessages, 2000);
    printer.run();
    std::vector<std::size_t> numbers;
    REQUIRE(stage.run_until([&] {
        read_numbers(reads, numbers);
        return numbers.size() >= kMessages;
    }));
    CHECK(is_complete(numbers, kMessages));
    CHECK(stage.count(PeerEvent::kSubscriberStepped) >= 1);
    CHECK_FALSE(stage.session->congested());
    CHECK(stage.log.at(0).find("a subscriber that does not read") != std::string::npos);

    // When the client reads again it gets its waiting messages in order, and then all new ones.
    std::vector<std::size_t> late;
    std::size_t extra = kMessages;
    REQUIRE(stage.run_until([&] {
        read_numbers(stalls, late);
        if (!late.empty() && late.back() >= kMessages) {
            return true;
        }
        stage.session->publish_bytes(extra++, 10);
        return false;
    }));
    CHECK(std::is_sorted(late.begin(), late.end()));
    CHECK(late.size() < extra);
    CHECK(late.front() == 0);
}

TEST_CASE("what waits in the front has a bound, in messages", "[jupyter][iopub]") {
    ZmqFrontConfig config;
    config.high_water_mark = 10;
    config.stall_max = kForever;
    Stage stage(config);
    ZmqTestClient client(stage.context, stage.session->connection_file);
    subscribe(stage, client);
    Printer printer(*stage.session, 1'000'000, 2000);
    printer.run();
    REQUIRE(stage.session->congested());  // one message waits
    // The session does not stop.
    for (std::size_t i = 1; i < limits::kZmqWaitingMessagesMax; ++i) {
        stage.session->publish_bytes(i, 1);
    }
    CHECK(stage.count(PeerEvent::kSubscriberStepped) == 0);
    stage.session->publish_bytes(0, 1);
    CHECK(stage.count(PeerEvent::kSubscriberStepped) == 1);
}

TEST_CASE("what waits in the front has a bound, in bytes", "[jupyter][iopub]") {
    ZmqFrontConfig config;
    config.high_water_mark = 10;
    config.stall_max = kForever;
    Stage stage(config);
    ZmqTestClient client(stage.context, stage.session->connection_file);
    subscribe(stage, client);
    // Small ones fill ZeroMQ up to its high-water mark, so that the large ones wait here.
    Printer printer(*stage.session, 1'000'000, 2000);
    printer.run();
    const std::size_t first = FakeSession::make_bytes(printer.printed() - 1, 2000).frame().size();
    constexpr std::size_t kLarge = 8ULL << 20U;
    const protocol::Message large = FakeSession::make_bytes(0, kLarge);
    std::size_t waiting = first;
    while (waiting + large.frame().size() <= limits::kZmqWaitingBytesMax) {
        stage.session->publish(large);
        waiting += large.frame().size();
    }
    CHECK(stage.count(PeerEvent::kSubscriberStepped) == 0);
    stage.session->publish(large);
    // The first, small one made no room: a large one had to go as well.
    CHECK(stage.count(PeerEvent::kSubscriberStepped) >= 1);
    CHECK(stage.session->congested());
}

TEST_CASE("the bounds on slow subscribers are those of the table", "[jupyter][iopub]") {
    const ZmqFrontConfig config;
    CHECK(config.high_water_mark == limits::kZmqHighWaterMark);
    CHECK(config.stall_max == limits::kZmqStallMax);
}

TEST_CASE(
    "a subscriber holds a high-water mark of messages, and no session waits before",
    "[jupyter][iopub]") {
    ZmqFrontConfig config;
    config.stall_max = kForever;
    Stage stage(config);
    ZmqTestClient client(stage.context, stage.session->connection_file);
    subscribe(stage, client);
    // The greeting is one of them.
    for (int i = 1; i < limits::kZmqHighWaterMark; ++i) {
        stage.session->publish_bytes(static_cast<std::size_t>(i), 10);
        REQUIRE_FALSE(stage.session->congested());
    }
}

TEST_CASE(
    "a client that does not read delays the end for the linger time at most", "[jupyter][iopub]") {
    ZmqFrontConfig config;
    config.stall_max = kForever;
    Stage stage(config);
    ZmqTestClient client(stage.context, stage.session->connection_file);
    subscribe(stage, client);
    Printer printer(*stage.session, 1'000'000, 2000);
    printer.run();
    REQUIRE(stage.session->congested());
    const auto began = std::chrono::steady_clock::now();
    stage.front.reset();
    const auto took = std::chrono::steady_clock::now() - began;
    CHECK(took < limits::kZmqLinger + std::chrono::seconds(2));
}

TEST_CASE("what ZeroMQ holds has a bound in bytes too", "[jupyter][iopub]") {
    ZmqFrontConfig config;
    config.stall_max = kForever;
    Stage stage(config);
    ZmqTestClient client(stage.context, stage.session->connection_file);
    subscribe_with_little_room(stage, client);
    constexpr std::size_t kMegabyte = 1ULL << 20U;
    constexpr std::size_t kMessages = 3 * limits::kZmqUnsentBytesMax / kMegabyte;
    Printer printer(*stage.session, kMessages, kMegabyte);
    printer.run();
    REQUIRE(stage.session->congested());
    std::vector<std::size_t> numbers;
    REQUIRE(stage.run_until([&] {
        read_numbers(client, numbers);
        return numbers.size() >= kMessages;
    }));
    CHECK(is_complete(numbers, kMessages));
}

TEST_CASE("bytes that no client takes for too long are dropped and counted", "[jupyter][iopub]") {
    ZmqFrontConfig config;
    config.stall_max = std::chrono::milliseconds(5);
    Stage stage(config);
    ZmqTestClient client(stage.context, stage.session->connection_file);
    subscribe_with_little_room(stage, client);
    constexpr std::size_t kHuge = limits::kZmqUnsentBytesMax / 4;
    Printer printer(*stage.session, 64, kHuge);
    printer.run();
    REQUIRE(stage.run_until([&] { return stage.count(PeerEvent::kOutputDropped) > 0; }));
    std::vector<std::size_t> numbers;
    REQUIRE(stage.run_until([&] {
        read_numbers(client, numbers);
        return printer.printed() == 64 && !stage.session->congested();
    }));
    // A message larger than the bound passes when nothing else waits: the test tries again until
    // ZeroMQ has sent the last ones.
    const protocol::Message huge = FakeSession::make_bytes(64, limits::kZmqUnsentBytesMax + 1);
    std::uint64_t dropped = 0;
    REQUIRE(stage.run_until([&] {
        read_numbers(client, numbers);
        if (stage.count(PeerEvent::kOutputDropped) != dropped && !stage.session->congested()) {
            dropped = stage.count(PeerEvent::kOutputDropped);
            stage.session->publish(huge);
        }
        return !numbers.empty() && numbers.back() == 64;
    }));
}

TEST_CASE(
    "limits::kSignTurnBytesMax: a large message is signed in turns, those behind it wait",
    "[jupyter][iopub][limits]") {
    Stage stage;
    ZmqTestClient client(stage.context, stage.session->connection_file);
    subscribe(stage, client);
    const auto text = [](std::size_t bytes) {
        return protocol::Message::make(
            Channel::kIopub,
            protocol::make_header("stream", "s", "u"),
            nlohmann::json::object(),
            {{"text", std::string(bytes, 'x')}});
    };
    const std::size_t most = limits::kSignTurnBytesMax;
    stage.session->publish(text(most / 2));
    CHECK_FALSE(stage.session->congested());
    stage.session->publish(text(4 * most));
    CHECK(stage.session->congested());
    stage.session->publish(text(1));
    // receive() has checked the signatures.
    for (const std::size_t bytes : {most / 2, 4 * most, std::size_t{1}}) {
        const protocol::Message got = stage.receive(client, Channel::kIopub);
        CHECK(got.parse_content().value()["text"].get<std::string>().size() == bytes);
    }
    REQUIRE(stage.run_until([&] { return !stage.session->congested(); }));
}
