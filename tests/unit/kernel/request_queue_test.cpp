// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/request_queue.hpp"

#include "protocol/limits.hpp"

#include <catch2/catch.hpp>

#include <string>

using cellkeep::ErrorCode;
using cellkeep::protocol::Channel;
using cellkeep::protocol::make_header;
using cellkeep::protocol::Message;
using cellkeep::session::Execution;
using cellkeep::session::ExecutionRecorder;
using cellkeep::session::InputFile;
using cellkeep::session::PendingRequest;
using cellkeep::session::RequestQueue;
using cellkeep::session::TrackedExecution;

namespace {

PendingRequest pending_request(
    const std::string& type, const std::string& client, const std::string& code) {
    return {
        Message::make(
            Channel::kShell,
            make_header(type, client, "u"),
            nlohmann::json::object(),
            {{"code", code}}),
        nullptr,
        nullptr,
        {}};
}

std::string code_of(const PendingRequest& one) {
    return one.message.parse_content().value()["code"];
}

}  // namespace

TEST_CASE("requests come out in the order they went in", "[session][queue]") {
    RequestQueue queue(10, 1 << 20U);
    REQUIRE(queue.push(pending_request("execute_request", "a", "1")).has_value());
    REQUIRE(queue.push(pending_request("complete_request", "b", "2")).has_value());
    CHECK(code_of(*queue.pop()) == "1");
    CHECK(code_of(*queue.pop()) == "2");
    CHECK_FALSE(queue.pop().has_value());
    CHECK(queue.bytes() == 0);
}

TEST_CASE("a waiting request is known by its msg_id", "[session][queue]") {
    RequestQueue queue(10, 1 << 20U);
    PendingRequest one = pending_request("execute_request", "a", "1");
    const std::string msg_id = one.message.header().msg_id;
    CHECK_FALSE(queue.holds(msg_id));
    REQUIRE(queue.push(std::move(one)).has_value());
    CHECK(queue.holds(msg_id));
    CHECK_FALSE(queue.holds(msg_id + "0"));
    REQUIRE(queue.pop().has_value());
    CHECK_FALSE(queue.holds(msg_id));
}

TEST_CASE("the count bound is exact and refuses without losing anything", "[session][queue]") {
    RequestQueue queue(2, 1 << 20U);
    REQUIRE(queue.push(pending_request("execute_request", "a", "1")).has_value());
    REQUIRE(queue.push(pending_request("execute_request", "a", "2")).has_value());
    const auto refused = queue.push(pending_request("execute_request", "a", "3"));
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kLimitExceeded);
    CHECK(queue.size() == 2);
    CHECK(code_of(*queue.pop()) == "1");
    CHECK(queue.push(pending_request("execute_request", "a", "4")).has_value());
}

TEST_CASE("the byte bound is exact", "[session][queue]") {
    PendingRequest one = pending_request("execute_request", "a", "1");
    const std::size_t size = one.message.frame().size();
    RequestQueue queue(10, size);
    REQUIRE(queue.push(std::move(one)).has_value());
    CHECK(queue.bytes() == size);
    CHECK(queue.push(pending_request("execute_request", "a", "2")).has_error());
    RequestQueue smaller(10, size - 1);
    CHECK(smaller.push(pending_request("execute_request", "a", "1")).has_error());
}

TEST_CASE("the files of what waits count as its bytes", "[session][queue]") {
    boost::asio::io_context io;
    const auto with_file = [&io](std::size_t bytes) {
        PendingRequest one = pending_request("execute_request", "a", "1");
        Execution::Order order;
        order.id = "exe_1";
        one.execution = std::make_shared<TrackedExecution>(TrackedExecution{
            std::make_shared<Execution>(io, std::move(order)),
            ExecutionRecorder("exe_1", "ses_1", "", 1000),
            std::nullopt,
            {}});
        InputFile file;
        file.path = "f";
        file.bytes = std::string(bytes, 'x');
        one.execution->files.push_back(std::move(file));
        return one;
    };
    RequestQueue queue(10, 10'000);
    REQUIRE(queue.push(with_file(6'000)).has_value());
    CHECK(queue.bytes() > 6'000);
    CHECK(queue.push(with_file(6'000)).has_error());
    CHECK(queue.take_execution("exe_1").has_value());
    CHECK(queue.bytes() == 0);
    REQUIRE(queue.push(with_file(6'000)).has_value());
    REQUIRE(queue.pop().has_value());
    CHECK(queue.bytes() == 0);
}

TEST_CASE("a session's queue is bounded by the table of limits", "[session][queue]") {
    RequestQueue queue(cellkeep::limits::kShellQueueMax, cellkeep::limits::kShellQueueBytesMax);
    for (std::size_t i = 0; i < cellkeep::limits::kShellQueueMax; ++i) {
        REQUIRE(queue.push(pending_request("execute_request", "a", "1")).has_value());
    }
    CHECK(queue.push(pending_request("execute_request", "a", "1")).has_error());
}

TEST_CASE("an abort takes only the executions of the failing client", "[session][queue]") {
    RequestQueue queue(10, 1 << 20U);
    const std::chrono::steady_clock::time_point shown(std::chrono::seconds(100));
    for (auto one :
         {pending_request("execute_request", "a", "1"),
          pending_request("complete_request", "a", "2"),
          pending_request("execute_request", "b", "3"),
          pending_request("execute_request", "a", "4"),
          pending_request("execute_request", "a", "5")}) {
        const bool late = code_of(one) == "5";
        one.queued_at = late ? shown + std::chrono::nanoseconds(1) : shown;
        REQUIRE(queue.push(std::move(one)).has_value());
    }
    const auto aborted = queue.take_executions_of("a", shown);
    REQUIRE(aborted.size() == 2);
    CHECK(code_of(aborted[0]) == "1");
    CHECK(code_of(aborted[1]) == "4");
    CHECK(code_of(*queue.pop()) == "2");
    CHECK(code_of(*queue.pop()) == "3");
    CHECK(code_of(*queue.pop()) == "5");
    CHECK(queue.bytes() == 0);
}

TEST_CASE("taking all leaves an empty queue", "[session][queue]") {
    RequestQueue queue(10, 1 << 20U);
    REQUIRE(queue.push(pending_request("execute_request", "a", "1")).has_value());
    CHECK(queue.take_all().size() == 1);
    CHECK(queue.size() == 0);
    CHECK(queue.bytes() == 0);
    CHECK(queue.take_all().empty());
}

TEST_CASE("queues that share their bound keep it together", "[session][queue]") {
    PendingRequest one = pending_request("execute_request", "a", "1");
    const std::size_t size = one.message.frame().size();
    std::size_t together = 0;
    RequestQueue first(10, 2 * size, &together);
    RequestQueue second(10, 2 * size, &together);
    REQUIRE(first.push(std::move(one)).has_value());
    REQUIRE(second.push(pending_request("execute_request", "a", "2")).has_value());
    CHECK(together == 2 * size);
    CHECK(second.push(pending_request("execute_request", "a", "3")).has_error());
    CHECK(first.push(pending_request("execute_request", "a", "3")).has_error());
    REQUIRE(first.pop().has_value());
    CHECK(together == size);
    CHECK(second.push(pending_request("execute_request", "a", "3")).has_value());
    CHECK(second.take_all().size() == 2);
    CHECK(together == 0);
}
