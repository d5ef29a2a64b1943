// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/output/output_fanout.hpp"

#include <catch2/catch.hpp>

#include <cstdint>
#include <functional>
#include <vector>

using cellkeep::protocol::Channel;
using cellkeep::protocol::make_header;
using cellkeep::protocol::Message;
using namespace cellkeep::session;
using nlohmann::json;

namespace {

class FakeObserver : public OutputObserver {
 public:
    void on_output(const OutputEntry& entry) override {
        seen.push_back(entry.sequence);
        if (reaction) {
            reaction();
        }
    }
    bool congested() const override { return full; }

    std::vector<std::uint64_t> seen;
    std::function<void()> reaction;
    bool full = false;
};

Message fanout_message() {
    return Message::make(
        Channel::kIopub,
        make_header("stream", "kernel", "user"),
        json::object(),
        {{"name", "stdout"}, {"text", "x"}});
}

using Numbers = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("every observer sees every message in order, and so does the journal", "[output]") {
    OutputFanout fanout(10, 100'000);
    FakeObserver first;
    FakeObserver second;
    fanout.subscribe(&first);
    CHECK_FALSE(fanout.show(fanout_message()));
    fanout.subscribe(&second);
    CHECK_FALSE(fanout.show(fanout_message()));
    fanout.unsubscribe(&first);
    CHECK_FALSE(fanout.show(fanout_message()));
    CHECK(first.seen == Numbers{1, 2});
    CHECK(second.seen == Numbers{2, 3});
    CHECK(fanout.journal().last_sequence() == 3);
    CHECK(fanout.journal().size() == 3);
}

TEST_CASE("one observer that cannot take more is enough for congestion", "[output]") {
    OutputFanout fanout(10, 100'000);
    FakeObserver fast;
    FakeObserver slow;
    fanout.subscribe(&fast);
    fanout.subscribe(&slow);
    slow.full = true;
    CHECK(fanout.show(fanout_message()));
    CHECK(fast.seen == Numbers{1});  // it sees what came all the same
    CHECK(slow.seen == Numbers{1});
    CHECK(fanout.is_congested());
    SECTION("until it can") {
        slow.full = false;
    }
    SECTION("until it goes") {
        fanout.unsubscribe(&slow);
    }
    CHECK_FALSE(fanout.is_congested());
    CHECK_FALSE(fanout.show(fanout_message()));
}

TEST_CASE("an observer that goes while a message is shown is not called again", "[output]") {
    OutputFanout fanout(10, 100'000);
    FakeObserver first;
    FakeObserver second;
    second.full = true;
    fanout.subscribe(&first);
    fanout.subscribe(&second);
    first.reaction = [&] { fanout.unsubscribe(&second); };
    CHECK_FALSE(fanout.show(fanout_message()));
    CHECK(first.seen == Numbers{1});
    CHECK(second.seen.empty());
}

TEST_CASE("an observer that comes while a message is shown sees the next one", "[output]") {
    OutputFanout fanout(10, 100'000);
    FakeObserver first;
    FakeObserver second;
    fanout.subscribe(&first);
    first.reaction = [&] {
        if (first.seen.size() == 1) {
            fanout.subscribe(&second);
        }
    };
    CHECK_FALSE(fanout.show(fanout_message()));
    CHECK_FALSE(fanout.show(fanout_message()));
    CHECK(second.seen == Numbers{2});
}
