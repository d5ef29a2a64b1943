// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/execution_book.hpp"

#include "protocol/limits.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include <memory>
#include <string>
#include <vector>

using namespace cellkeep;
using namespace cellkeep::session;

namespace {

std::shared_ptr<Execution> make(boost::asio::io_context& io, const std::string& id) {
    Execution::Order order;
    order.id = id;
    return std::make_shared<Execution>(io, std::move(order));
}

void finish(Execution& execution, std::uint64_t bytes = 0) {
    ExecutionResult result;
    result.id = execution.id();
    result.retained_bytes = bytes;
    execution.finish(std::move(result));
}

}  // namespace

TEST_CASE(
    "the code and its input make a request another one, its reasoning does not",
    "[session][book]") {
    ExecutionRequest request;
    request.code = "1";
    const std::string digest = digest_of(request);
    ExecutionRequest other = request;
    other.idempotency_key = "k";
    other.reasoning = "in other words";
    other.metadata = {{"try", 2}};
    CHECK(digest_of(other) == digest);
    other.stdin_text = "x";
    CHECK(digest_of(other) != digest);
    other = request;
    other.timeout = std::chrono::milliseconds(5);
    CHECK(digest_of(other) != digest);
    other = request;
    other.files.push_back({"a", "b", "", ""});
    const std::string with_file = digest_of(other);
    CHECK(with_file != digest);
    other.files[0] = {"ab", "", "", ""};
    CHECK(digest_of(other) != with_file);
}

TEST_CASE("a key stands for its first request, running or finished", "[session][book]") {
    boost::asio::io_context io;
    ExecutionBook book;
    const auto first = make(io, "exe_1");
    book.add(first, "k", "digest");
    CHECK(book.find_key("k", "digest").value() == first);
    CHECK(book.find_key("k", "other").error().code() == ErrorCode::kInvalidArgument);
    CHECK(book.find_key("l", "digest").value() == nullptr);
    CHECK(book.find_key("", "digest").value() == nullptr);
    finish(*first);
    book.settle();
    CHECK(book.find_key("k", "digest").value() == first);
}

TEST_CASE("finished executions and their keys are remembered up to the count", "[session][book]") {
    // limits::kExecutionHistoryMax
    boost::asio::io_context io;
    ExecutionBook book;
    const auto waiting = make(io, "exe_waiting");
    book.add(waiting, "w", "d");
    for (std::size_t i = 0; i < limits::kExecutionHistoryMax; ++i) {
        const auto one = make(io, "exe_" + std::to_string(i));
        book.add(one, std::to_string(i), "d");
        finish(*one);
        book.settle();
    }
    CHECK(book.find("exe_0") != nullptr);
    const auto last = make(io, "exe_last");
    book.add(last, "last", "d");
    finish(*last);
    book.settle();
    CHECK(book.find("exe_0") == nullptr);
    const auto forgotten = book.find_key("0", "d");
    REQUIRE(forgotten.has_error());
    CHECK(forgotten.error().code() == ErrorCode::kNotFound);
    CHECK(forgotten.error().message().find("exe_0") != std::string::npos);
    CHECK(book.find_key("0", "other").error().code() == ErrorCode::kInvalidArgument);
    CHECK(book.find("exe_1") != nullptr);
    CHECK(book.find("exe_waiting") == waiting);
    CHECK(book.list().size() == limits::kExecutionHistoryMax + 1);
}

TEST_CASE("keys are remembered for longer than answers, and bounded", "[session][book]") {
    // limits::kIdempotencyKeysMax
    static_assert(limits::kIdempotencyKeysMax > limits::kExecutionHistoryMax);
    boost::asio::io_context io;
    ExecutionBook book;
    for (std::size_t i = 0; i <= limits::kIdempotencyKeysMax; ++i) {
        const auto one = make(io, "exe_" + std::to_string(i));
        book.add(one, std::to_string(i), "d");
        finish(*one);
        book.settle();
    }
    CHECK(book.find_key("0", "d").value() == nullptr);
    CHECK(book.find_key("1", "d").has_error());
    CHECK(book.list().size() == limits::kExecutionHistoryMax);
}

TEST_CASE(
    "finished executions are remembered up to their bytes, the newest always", "[session][book]") {
    boost::asio::io_context io;
    ExecutionBook book;
    const auto add = [&](const std::string& id, std::uint64_t bytes) {
        const auto one = make(io, id);
        book.add(one, "", "");
        finish(*one, bytes);
        book.settle();
    };
    add("exe_1", limits::kExecutionHistoryBytesMax / 2);
    add("exe_2", limits::kExecutionHistoryBytesMax / 2);
    CHECK(book.list().size() == 2);
    add("exe_3", 1);
    CHECK(book.find("exe_1") == nullptr);
    CHECK(book.list().size() == 2);
    add("exe_4", limits::kExecutionHistoryBytesMax + 1);
    CHECK(book.list().size() == 1);
}

TEST_CASE(
    "an execution that finishes out of order is counted once, and a running one is kept",
    "[session][book]") {
    boost::asio::io_context io;
    ExecutionBook book;
    const auto slow = make(io, "exe_slow");
    const auto fast = make(io, "exe_fast");
    book.add(slow, "slow", "d");
    book.add(fast, "fast", "d");
    finish(*fast, limits::kExecutionHistoryBytesMax);
    book.settle();
    book.settle();  // again, with nothing new
    CHECK(book.list() == std::vector{slow, fast});
    // The execution that began first and finished last is the older one, and goes.
    finish(*slow, 1);
    book.settle();
    CHECK(book.list() == std::vector{fast});
    CHECK(book.find_key("slow", "d").has_error());
    CHECK(book.find_key("fast", "d").value() == fast);
    const auto running = make(io, "exe_running");
    book.add(running, "", "");
    const auto last = make(io, "exe_last");
    book.add(last, "", "");
    finish(*last, 1);
    book.settle();
    CHECK(book.list() == std::vector{running, last});
}

TEST_CASE("the events of the oldest go before their answers do", "[session][book]") {
    // limits::kExecutionJournalsBytesMax
    boost::asio::io_context io;
    ExecutionBook book;
    constexpr std::size_t kOne = 7U << 20U;
    const std::size_t fit = limits::kExecutionJournalsBytesMax / kOne;
    for (std::size_t i = 0; i <= fit; ++i) {
        const auto one = make(io, "exe_" + std::to_string(i));
        book.add(one, "", "");
        one->add_event(
            "stdout",
            cellkeep::protocol::TextPieces(R"({"text":")" + std::string(kOne, 'x') + R"("})"));
        finish(*one);
        book.settle();
    }
    CHECK(book.find("exe_0")->events().size() == 1);
    CHECK(book.find("exe_1")->events().size() == 2);
}

TEST_CASE("an execution ends once and notifies all its listeners", "[session][book]") {
    boost::asio::io_context io;
    const auto execution = make(io, "exe_1");
    int news = 0;
    auto listener = execution->subscribe([&] { ++news; });
    CHECK(execution->listeners() == 1);
    execution->mark_started();
    CHECK(news == 1);
    int answers = 0;
    for (int i = 0; i < 2; ++i) {
        boost::asio::co_spawn(
            io,
            [&]() -> boost::asio::awaitable<void> {
                const auto result = co_await execution->wait();
                CHECK(result->id == "exe_1");
                ++answers;
            },
            boost::asio::detached);
    }
    (void)io.poll();
    CHECK(answers == 0);
    finish(*execution);
    finish(*execution);
    (void)io.run();
    CHECK(answers == 2);
    CHECK(news == 2);
    CHECK(execution->events().last_sequence() == 2);
    listener.reset();
    CHECK(execution->listeners() == 0);
}

TEST_CASE("who waits for an execution goes on with what ended it", "[session][book]") {
    boost::asio::io_context io;
    const auto execution = make(io, "exe_1");
    int answers = 0;
    const auto wait = [&]() -> boost::asio::awaitable<void> {
        (void)co_await execution->wait();
        ++answers;
    };
    boost::asio::co_spawn(io, wait, boost::asio::detached);
    (void)io.poll();
    {
        const Wakeups::Turn turn(boost::asio::use_service<Wakeups>(io));
        finish(*execution);
        CHECK(answers == 0);  // not inside the call
    }
    CHECK(answers == 1);  // without a turn of the loop
    boost::asio::co_spawn(io, wait, boost::asio::detached);
    (void)io.run();
    CHECK(answers == 2);
}

TEST_CASE("keys stand for the same in another program", "[session][book]") {
    boost::asio::io_context io;
    ExecutionBook before;
    const auto first = make(io, "exe_1");
    const auto second = make(io, "exe_2");
    before.add(first, "k1", "d1");
    before.add(second, "k2", "d2");
    before.add(make(io, "exe_3"), "", "d3");
    for (const auto& one : before.list()) {
        finish(*one);
    }
    before.settle();
    ExecutionBook after;
    after.go_on({second}, before.keys());
    CHECK(after.find("exe_2") == second);
    CHECK(after.find_key("k2", "d2").value() == second);
    CHECK(after.find_key("k2", "other").error().code() == ErrorCode::kInvalidArgument);
    // Its answer did not pass, and it must not run again.
    CHECK(after.find_key("k1", "d1").error().code() == ErrorCode::kNotFound);
    CHECK(after.find_key("k3", "d3").value() == nullptr);
    CHECK(after.list() == std::vector<ExecutionBook::Entry>{second});
}
