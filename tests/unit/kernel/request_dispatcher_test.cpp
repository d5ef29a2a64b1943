// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/request_dispatcher.hpp"

#include "protocol/limits.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::session {
namespace {

using protocol::Channel;
using protocol::Message;
using Published = std::vector<std::string>;

class WaitingClient : public ReplySink {
 public:
    void deliver(const Message& message) override {
        const auto content = message.parse_content().value();
        answers.push_back(message.header().msg_type + " " + content.value("ename", "?"));
    }
    std::vector<std::string> answers;
};

Message request_of(
    const std::string& client,
    const std::string& type = "execute_request",
    const nlohmann::json& content = {{"code", "1"}}) {
    return Message::make(
        Channel::kShell,
        protocol::make_header(type, client, "user"),
        nlohmann::json::object(),
        content);
}

struct DispatcherFixture {
    boost::asio::io_context io;
    std::size_t queued_bytes = 0;
    bool is_free = false;
    std::shared_ptr<int> owner = std::make_shared<int>(0);
    ServerMessages messages{"server"};
    std::vector<PendingRequest> begun;
    Published published;
    std::vector<ExecutionResult> results;
    std::shared_ptr<WaitingClient> client = std::make_shared<WaitingClient>();
    RequestDispatcher dispatcher{
        io,
        queued_bytes,
        {.begin =
             [this](PendingRequest request) {
                 is_free = false;
                 begun.push_back(std::move(request));
             },
         .publish =
             [this](const Message& message) {
                 const std::string& type = message.header().msg_type;
                 published.push_back(
                     type == "status"
                         ? message.parse_content().value().at("execution_state").get<std::string>()
                         : type);
             },
         .complete = [this](
                         TrackedExecution&,
                         ExecutionResult result) { results.push_back(std::move(result)); },
         .is_free = [this] { return is_free; },
         .messages = [this]() -> const ServerMessages& { return messages; }},
        [this] { return owner; }};

    Message push(Message request) {
        REQUIRE(dispatcher.push({request, client, nullptr, {}}).has_value());
        return request;
    }
    std::shared_ptr<Execution> push_execution() {
        auto execution = std::make_shared<Execution>(
            io,
            Execution::Order{
                .id = "exe_" + std::to_string(dispatcher.size()),
                .session_id = "s",
                .language = "python",
                .code_sha256 = {},
                .reasoning = {}});
        auto tracked = std::make_shared<TrackedExecution>(TrackedExecution{
            execution, ExecutionRecorder(execution->id(), "s", "", 1000), std::nullopt, {}});
        REQUIRE(dispatcher
                    .push(
                        {request_of("agent"),
                         nullptr,
                         std::move(tracked),
                         std::chrono::steady_clock::now()})
                    .has_value());
        return execution;
    }
    void poll() {
        io.restart();
        (void)io.poll();
    }
};

TEST_CASE("one request at a time goes to a kernel that is free", "[session][dispatcher]") {
    DispatcherFixture fixture;
    fixture.dispatcher.dispatch();  // nothing waits
    const Message first = fixture.push(request_of("a"));
    fixture.push(request_of("b"));
    CHECK(fixture.queued_bytes > 0);
    fixture.dispatcher.dispatch();
    CHECK(fixture.begun.empty());
    CHECK(fixture.dispatcher.holds(first.header().msg_id));
    fixture.is_free = true;
    fixture.dispatcher.dispatch();
    fixture.dispatcher.dispatch();
    REQUIRE(fixture.begun.size() == 1);
    CHECK(fixture.begun[0].message.header().msg_id == first.header().msg_id);
    CHECK_FALSE(fixture.dispatcher.holds(first.header().msg_id));
    CHECK(fixture.dispatcher.size() == 1);
    CHECK(fixture.published.empty());
}

TEST_CASE("the queue is bounded by limits::kShellQueueMax", "[session][dispatcher]") {
    DispatcherFixture fixture;
    for (std::size_t i = 0; i < limits::kShellQueueMax; ++i) {
        fixture.push(request_of("a"));
    }
    const auto refused = fixture.dispatcher.push({request_of("a"), fixture.client, nullptr, {}});
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kLimitExceeded);
    CHECK(fixture.dispatcher.size() == limits::kShellQueueMax);
}

TEST_CASE("a refusal comes later, between busy and idle", "[session][dispatcher]") {
    DispatcherFixture fixture;
    const std::weak_ptr<int> owner = fixture.owner;
    fixture.dispatcher.refuse(request_of("a"), fixture.client, "QueueFull", "no room");
    fixture.dispatcher.refuse(request_of("a", "comm_msg"), fixture.client, "QueueFull", "no room");
    fixture.owner.reset();
    CHECK_FALSE(owner.expired());  // the session is kept until both are answered
    CHECK(fixture.client->answers.empty());
    fixture.poll();
    CHECK(fixture.client->answers == std::vector<std::string>{"execute_reply QueueFull"});
    CHECK(fixture.published == Published{"busy", "idle", "busy", "idle"});
    CHECK(owner.expired());
}

TEST_CASE("a dead kernel's requests are all answered", "[session][dispatcher]") {
    DispatcherFixture fixture;
    fixture.push(request_of("a"));
    fixture.push(request_of("a", "comm_msg"));  // it has no reply
    (void)fixture.push_execution();
    fixture.dispatcher.fail_all({Death::Kind::kSignal, 11}, "It crashed.");
    CHECK(fixture.client->answers == std::vector<std::string>{"execute_reply KernelDied"});
    REQUIRE(fixture.results.size() == 1);
    CHECK(fixture.results[0].status == ExecutionStatus::kDead);
    CHECK(fixture.published.size() == 6);
    CHECK(fixture.dispatcher.size() == 0);
    CHECK(fixture.queued_bytes == 0);
    fixture.dispatcher.fail_all({Death::Kind::kSignal, 11}, "It crashed.");
    CHECK(fixture.results.size() == 1);
}

namespace {

/// A time later than all waiting requests.
std::chrono::steady_clock::time_point later() {
    return std::chrono::steady_clock::time_point::max();
}

}  // namespace

TEST_CASE("a failure stops what its client queued behind it", "[session][dispatcher]") {
    DispatcherFixture fixture;
    fixture.push(request_of("a"));
    fixture.push(request_of("b"));
    fixture.push(request_of("a", "complete_request"));
    (void)fixture.push_execution();
    SECTION("of Jupyter clients") {
        const auto stop = GENERATE(
            nlohmann::json({{"code", "1"}}),
            nlohmann::json({{"code", "1"}, {"stop_on_error", true}}));
        fixture.dispatcher.abort_followers(request_of("a", "execute_request", stop), later());
        CHECK(
            fixture.client->answers == std::vector<std::string>{"execute_reply ExecutionAborted"});
        CHECK(fixture.results.empty());
        CHECK(fixture.dispatcher.size() == 3);
        CHECK(fixture.published == Published{"busy", "error", "idle"});
    }
    SECTION("of agents") {
        fixture.dispatcher.abort_followers(request_of("agent"), later());
        REQUIRE(fixture.results.size() == 1);
        CHECK(fixture.results[0].status == ExecutionStatus::kInterrupted);
    }
    SECTION("unless it says otherwise") {
        fixture.dispatcher.abort_followers(
            request_of("a", "execute_request", {{"code", "1"}, {"stop_on_error", false}}), later());
        CHECK(fixture.dispatcher.size() == 4);
    }
    SECTION("but not what came after its error was shown") {
        fixture.dispatcher.abort_followers(
            request_of("a"), std::chrono::steady_clock::time_point::min());
        CHECK(fixture.dispatcher.size() == 4);
        CHECK(fixture.published.empty());
    }
}

TEST_CASE("an execution can be taken out while it waits", "[session][dispatcher]") {
    DispatcherFixture fixture;
    const auto first = fixture.push_execution();
    const auto second = fixture.push_execution();
    CHECK(fixture.dispatcher.cancel(*second));
    CHECK_FALSE(fixture.dispatcher.cancel(*second));
    REQUIRE(fixture.results.size() == 1);
    CHECK(fixture.results[0].status == ExecutionStatus::kInterrupted);
    CHECK(fixture.results[0].error->name == "Cancelled");
    CHECK(fixture.published == Published{"busy", "idle"});
    CHECK(fixture.dispatcher.size() == 1);
    CHECK(fixture.dispatcher.cancel(*first));
}

}  // namespace
}  // namespace cellkeep::session
