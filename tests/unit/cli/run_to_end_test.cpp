// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/run/run_to_end.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <catch2/catch.hpp>

#include <stdexcept>

namespace cellkeep::cli {
namespace {

namespace asio = boost::asio;

asio::awaitable<Result<int>> answer(int value) {
    co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
    if (value < 0) {
        throw std::runtime_error("thrown");
    }
    if (value == 0) {
        co_return Error(ErrorCode::kNotFound, "none");
    }
    co_return value;
}

TEST_CASE("a coroutine's value, error and exception are returned", "[cli][run_to_end]") {
    asio::io_context first;
    CHECK(run_to_end(first, answer(5)).value() == 5);
    asio::io_context second;
    CHECK(run_to_end(second, answer(0)).error().code() == ErrorCode::kNotFound);
    asio::io_context third;
    CHECK_THROWS_AS(run_to_end(third, answer(-1)), std::runtime_error);
}

TEST_CASE("nothing of it is left to run afterwards", "[cli][run_to_end]") {
    asio::io_context io;
    CHECK(run_to_end(io, answer(5)).value() == 5);
    io.restart();
    CHECK(io.poll() == 0);
}

TEST_CASE("a stopped io_context is an error, not a hang", "[cli][run_to_end]") {
    asio::io_context io;
    io.stop();
    CHECK(run_to_end(io, answer(5)).error().code() == ErrorCode::kCancelled);
}

}  // namespace
}  // namespace cellkeep::cli
