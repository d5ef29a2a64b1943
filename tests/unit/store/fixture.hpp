// SPDX-License-Identifier: Apache-2.0
//
// A store on a file of its own, and its questions asked by code that is no coroutine.
#pragma once

#include "kernel-manager/store/store.hpp"
#include "tests/support/temporary_directory.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::store::test {

inline ExecutionRecord execution(const std::string& id, const std::string& status = "ok") {
    ExecutionRecord record;
    record.id = id;
    record.session_id = "ses_1";
    record.owner = "somebody";
    record.status = status;
    record.created_at = "2026-01-01T00:00:00Z";
    record.reasoning = "why";
    record.wall_ms = 1.5;
    record.memory_peak_bytes = 1ULL << 40U;
    return record;
}

struct Fixture {
    cellkeep::test::TemporaryDirectory directory;
    std::string path = directory.path() + "/history.db";
    std::mutex mutex;
    std::vector<std::string> lines;

    std::unique_ptr<Store> open(StoreLimits limits = {}) {
        auto opened = Store::open(
            path,
            [this](const std::string& line) {
                const std::lock_guard lock(mutex);
                lines.push_back(line);
            },
            limits);
        REQUIRE(opened.has_value());
        return std::move(opened).value();
    }
};

template <typename Answer>
Result<Answer> run_any(boost::asio::awaitable<Result<Answer>> question) {
    boost::asio::io_context io(1);
    std::optional<Result<Answer>> answer;
    boost::asio::co_spawn(
        io,
        [&]() -> boost::asio::awaitable<void> { answer.emplace(co_await std::move(question)); },
        [](std::exception_ptr thrown) { REQUIRE_FALSE(thrown); });
    (void)io.run();
    REQUIRE(answer.has_value());
    return std::move(*answer);
}

template <typename Answer>
Answer run(boost::asio::awaitable<Result<Answer>> question) {
    auto answer = run_any(std::move(question));
    REQUIRE(answer.has_value());
    return std::move(answer).value();
}

}  // namespace cellkeep::store::test
