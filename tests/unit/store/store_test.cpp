// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/store/store.hpp"

#include "tests/unit/store/fixture.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <sqlite3.h>
#include <string>
#include <thread>

namespace cellkeep::store {
namespace {

using namespace cellkeep::store::test;

TEST_CASE("a stored record is found, also by the next server", "[store]") {
    Fixture fixture;
    {
        const auto store = fixture.open();
        store->put(execution("exe_1", ""));
        store->put(execution("exe_1"));
        const auto found = run(store->find_execution("exe_1"));
        REQUIRE(found.has_value());
        CHECK(found->status == "ok");
        CHECK(found->memory_peak_bytes == 1ULL << 40U);
        CHECK_FALSE(run(store->find_execution("exe_2")).has_value());
        CHECK_FALSE(run(store->find_session("ses_1")).has_value());
        store->put(execution("exe_2"));
    }
    const auto store = fixture.open();
    CHECK(run(store->find_execution("exe_2"))->reasoning == "why");
    CHECK(store->lost() == 0);
    CHECK(store->trouble().empty());
    CHECK(fixture.lines.empty());
}

TEST_CASE("the end of an execution is not undone by its beginning", "[store]") {
    Fixture fixture;
    const auto store = fixture.open();
    store->put(execution("exe_1", ""));
    store->put(execution("exe_1"));
    store->put(execution("exe_1", ""));
    CHECK(run(store->find_execution("exe_1"))->status == "ok");
}

TEST_CASE("executions that a dead server left unfinished are marked as interrupted", "[store]") {
    Fixture fixture;
    {
        const auto store = fixture.open();
        SessionRecord session;
        session.id = "ses_1";
        store->put(session);
        store->put(execution("exe_1", ""));
        store->put(execution("exe_2"));
    }
    const auto store = fixture.open();
    const auto interrupted = run(store->find_execution("exe_1"));
    CHECK(interrupted->status == "interrupted");
    CHECK(interrupted->error_kind == "server_died");
    CHECK_FALSE(interrupted->finished_at.empty());
    CHECK(run(store->find_execution("exe_2"))->error_kind.empty());
    CHECK(run(store->find_session("ses_1"))->reason == "server_died");
}

TEST_CASE("a session's executions are listed page by page, in order", "[store]") {
    Fixture fixture;
    const auto store = fixture.open();
    for (const char* id : {"exe_b", "exe_a", "exe_c"}) {
        store->put(execution(id));
    }
    store->put(execution("exe_b"));  // written again, it keeps its place
    const auto first = run(store->list_executions("ses_1", "", 2));
    REQUIRE(first.size() == 2);
    CHECK(first[0].id == "exe_b");
    CHECK(first[1].id == "exe_a");
    const auto ask = [&](const std::string& session, const std::string& after) {
        return run_any(store->list_executions(session, after, 2));
    };
    CHECK(ask("ses_1", "exe_never").error().code() == ErrorCode::kNotFound);
    CHECK(ask("ses_2", "exe_a").error().code() == ErrorCode::kNotFound);
    const auto rest = run(store->list_executions("ses_1", "exe_a", 2));
    REQUIRE(rest.size() == 1);
    CHECK(rest[0].id == "exe_c");
    CHECK(run(store->list_executions("ses_2", "", 2)).empty());
}

TEST_CASE("the oldest are forgotten past the retention", "[store]") {
    // limits::kStoredSessionsMax, limits::kStoredExecutionsMax
    const StoreLimits defaults;
    CHECK(defaults.retention.sessions == limits::kStoredSessionsMax);
    CHECK(defaults.retention.executions == limits::kStoredExecutionsMax);
    Fixture fixture;
    StoreLimits limits;
    limits.retention = {2, 2};
    const auto store = fixture.open(limits);
    store->put(execution("exe_1"));
    store->put(execution("exe_2"));
    CHECK(run(store->list_executions("ses_1", "", 9)).size() == 2);
    store->put(execution("exe_3"));
    const auto left = run(store->list_executions("ses_1", "", 9));
    REQUIRE(left.size() == 2);
    CHECK(left[0].id == "exe_2");
}

TEST_CASE("a large store may hold a hundredth more than its retention", "[store]") {
    Fixture fixture;
    StoreLimits limits;
    limits.retention = {2, 200};
    const auto store = fixture.open(limits);
    std::size_t most = 0;
    for (int number = 0; number < 220; ++number) {
        // A read first writes all pending records, so each record is written alone.
        store->put(execution("exe_" + std::to_string(number)));
        most = std::max(most, run(store->list_executions("ses_1", "", 999)).size());
    }
    CHECK(most == 202);
    // Another process does not know how much the one before it has written.
    store->put(execution("exe_last"));
    CHECK(run(store->list_executions("ses_1", "", 999)).size() >= 200);
}

TEST_CASE("the caller may be destroyed as soon as the answer is there", "[store]") {
    // run() ends its io_context with the answer. The store's thread may still hold parts of the
    // request, which must not depend on that io_context: a sanitizer finds it if they do. Requests
    // at one time are answered one after the other, so the first caller is gone while the thread is
    // still busy.
    Fixture fixture;
    const auto store = fixture.open();
    store->put(execution("exe_1"));
    std::atomic<int> found = 0;
    const auto ask = [&] {
        for (int round = 0; round < 500; ++round) {
            found += run_any(store->find_execution("exe_1")).has_value() ? 1 : 0;
        }
    };
    std::thread other(ask);
    ask();
    other.join();
    CHECK(found == 1000);
}

TEST_CASE("what does not fit into the queue is counted and the rest written", "[store]") {
    // limits::kStoreQueueMax, limits::kStoreQueueBytesMax
    const StoreLimits defaults;
    CHECK(defaults.queue_max == limits::kStoreQueueMax);
    CHECK(defaults.queue_bytes_max == limits::kStoreQueueBytesMax);
    Fixture fixture;
    StoreLimits limits;
    limits.queue_bytes_max = 4096;
    const auto store = fixture.open(limits);
    ExecutionRecord large = execution("exe_large");
    large.reasoning = std::string(4096, 'r');
    store->put(large);
    CHECK(store->lost() == 1);
    store->put(execution("exe_1"));
    CHECK(run(store->find_execution("exe_1")).has_value());
    CHECK_FALSE(run(store->find_execution("exe_large")).has_value());
    StoreLimits none;
    none.queue_max = 0;
    Fixture other;
    const auto closed = other.open(none);
    closed->put(execution("exe_1"));
    CHECK(closed->lost() == 1);
}

TEST_CASE("a damaged file is put aside and a new one begun", "[store]") {
    Fixture fixture;
    std::ofstream(fixture.path) << std::string(100'000, 'x');
    const auto store = fixture.open();
    CHECK(std::ifstream(fixture.path + ".damaged").good());
    REQUIRE(fixture.lines.size() == 1);
    CHECK(fixture.lines[0].find("put aside") != std::string::npos);
    store->put(execution("exe_1"));
    CHECK(run(store->find_execution("exe_1")).has_value());
}

TEST_CASE("a damaged file overwrites no earlier one", "[store]") {
    Fixture fixture;
    const auto content = [&](const std::string& suffix) {
        std::ifstream file(fixture.path + suffix);
        return std::string(1, static_cast<char>(file.get()));
    };
    for (std::size_t i = 0; i < kDamagedFilesMax; ++i) {
        std::ofstream(fixture.path, std::ios::trunc)
            << std::string(100'000, static_cast<char>('a' + i));
        (void)fixture.open();
    }
    CHECK(content(".damaged") == "a");
    CHECK(content(".damaged.2") == "b");
    CHECK(content(".damaged." + std::to_string(kDamagedFilesMax)) == "h");
    std::ofstream(fixture.path, std::ios::trunc) << std::string(100'000, 'x');
    const auto refused = Store::open(fixture.path, [](const std::string&) {});
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kLimitExceeded);
    CHECK(content("") == "x");
}

TEST_CASE("a sound file that is locked is an error and stays where it is", "[store]") {
    Fixture fixture;
    sqlite3* other = nullptr;
    REQUIRE(sqlite3_open(fixture.path.c_str(), &other) == SQLITE_OK);
    REQUIRE(
        sqlite3_exec(other, "CREATE TABLE t (a); BEGIN EXCLUSIVE", nullptr, nullptr, nullptr) ==
        SQLITE_OK);
    const auto begun = std::chrono::steady_clock::now();
    const auto locked = Store::open(fixture.path, [](const std::string&) {});
    // The store waits kBusyTimeout for the lock of another process.
    CHECK(std::chrono::steady_clock::now() - begun >= kBusyTimeout);
    REQUIRE(locked.has_error());
    CHECK(locked.error().code() == ErrorCode::kSystem);
    CHECK_FALSE(std::ifstream(fixture.path + ".damaged").good());
    REQUIRE(sqlite3_close(other) == SQLITE_OK);
    CHECK(fixture.open()->trouble().empty());
}

TEST_CASE("a store that cannot be opened is an error", "[store]") {
    const auto opened = Store::open("/dev/null/history.db", [](const std::string&) {});
    CHECK(opened.has_error());
}

}  // namespace
}  // namespace cellkeep::store
