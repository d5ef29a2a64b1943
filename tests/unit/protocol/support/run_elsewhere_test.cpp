// SPDX-License-Identifier: Apache-2.0
#include "protocol/support/run_elsewhere.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <catch2/catch.hpp>

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
using cellkeep::run_elsewhere;
using cellkeep::WorkThread;

struct ElsewhereFixture {
    std::unique_ptr<asio::io_context> io = std::make_unique<asio::io_context>(1);
    std::unique_ptr<WorkThread> thread = std::make_unique<WorkThread>();
    std::string thrown;

    template <typename T>
    void begin(std::function<std::optional<T>()> slice, std::function<void(T)> then) {
        asio::co_spawn(
            *io,
            wait(*io, *thread, std::move(slice), std::move(then)),
            [this](std::exception_ptr failure) {
                try {
                    if (failure) {
                        std::rethrow_exception(failure);
                    }
                } catch (const std::exception& what) {
                    thrown = what.what();
                }
            });
    }
    template <typename T>
    static asio::awaitable<void> wait(
        asio::io_context& io,
        WorkThread& thread,
        std::function<std::optional<T>()> slice,
        std::function<void(T)> then) {
        then(co_await run_elsewhere<T>(io, thread, std::move(slice)));
    }
};

TEST_CASE("the event loop turns while the work is done elsewhere", "[support][work]") {
    ElsewhereFixture fixture;
    std::promise<void> turned;
    std::thread::id worker;
    int found = 0;
    fixture.begin<int>(
        [&]() -> std::optional<int> {
            turned.get_future().wait();  // never comes if the loop waits for this
            worker = std::this_thread::get_id();
            return 7;
        },
        [&](int answer) { found = answer; });
    asio::post(*fixture.io, [&] { turned.set_value(); });
    (void)fixture.io->run();
    CHECK(found == 7);
    CHECK(worker != std::this_thread::get_id());
}

TEST_CASE("a slice is called until it has an answer, and others between", "[support][work]") {
    ElsewhereFixture fixture;
    std::vector<int> order;  // of the worker; read after the run
    std::vector<int> ended;
    for (const int name : {1, 2}) {
        fixture.begin<int>(
            [&order, name, left = 2]() mutable -> std::optional<int> {
                order.push_back(name);
                return --left > 0 ? std::nullopt : std::optional(name);
            },
            [&](int answer) { ended.push_back(answer); });
    }
    // Both wait before the thread has finished the first, however fast it is.
    (void)fixture.io->run();
    CHECK(order.size() == 4);
    CHECK(ended == std::vector<int>{1, 2});
}

TEST_CASE("the answer is moved to who waits", "[support][work]") {
    struct Answer {
        Answer() = default;
        Answer(const Answer& other) : copies(other.copies + 1) {}
        Answer(Answer&&) = default;
        Answer& operator=(const Answer&) = default;
        Answer& operator=(Answer&&) = default;
        ~Answer() = default;
        int copies = 0;
    };
    ElsewhereFixture fixture;
    std::optional<int> copies;
    fixture.begin<Answer>(
        [] { return std::optional<Answer>(std::in_place); },
        [&](const Answer& answer) { copies = answer.copies; });
    (void)fixture.io->run();
    CHECK(copies.value_or(-1) == 0);
}

TEST_CASE("what the work throws comes to who waits", "[support][work]") {
    ElsewhereFixture fixture;
    bool answered = false;
    fixture.begin<int>(
        []() -> std::optional<int> { throw std::runtime_error("no memory"); },
        [&](int) { answered = true; });
    (void)fixture.io->run();
    CHECK_FALSE(answered);
    CHECK(fixture.thrown == "no memory");
}

TEST_CASE("work whose thread ends is dropped with what it owns", "[support][work]") {
    ElsewhereFixture fixture;
    std::promise<void> begun;
    std::promise<void> go_on;
    const auto owned = std::make_shared<int>(1);
    const std::weak_ptr<int> alive = owned;
    fixture.begin<int>(
        [&]() -> std::optional<int> {
            begun.set_value();
            go_on.get_future().wait();
            return 1;
        },
        [](int) {});
    fixture.begin<int>(
        [owned = std::make_shared<int>(2)] { return std::optional(*owned); },
        [](int) { FAIL("it was dropped"); });
    (void)fixture.io->poll();
    begun.get_future().wait();
    std::thread ending([&] { fixture.thread.reset(); });
    go_on.set_value();
    ending.join();
    fixture.io.reset();
    CHECK_FALSE(alive.expired());  // only the test's own
}

}  // namespace
