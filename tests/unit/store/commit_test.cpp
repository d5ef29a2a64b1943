// SPDX-License-Identifier: Apache-2.0
//
// When the store commits, and which records are there after its process was killed.
#include "kernel-manager/store/store.hpp"
#include "tests/unit/store/fixture.hpp"

#include <catch2/catch.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sqlite3.h>
#include <string>
#include <thread>
#include <utility>

namespace cellkeep::store {
namespace {

using namespace cellkeep::store::test;

/// Waits until another process would see this number of executions in the file.
void wait_for_rows(const std::string& path, int wanted) {
    sqlite3* reader = nullptr;
    REQUIRE(sqlite3_open_v2(path.c_str(), &reader, SQLITE_OPEN_READONLY, nullptr) == SQLITE_OK);
    const auto count = [](void* rows, int /*columns*/, char** values, char** /*names*/) {
        *static_cast<int*>(rows) = std::atoi(values[0]);
        return 0;
    };
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    int rows = 0;
    while (rows < wanted) {
        const int outcome =
            sqlite3_exec(reader, "SELECT count(*) FROM executions", count, &rows, nullptr);
        REQUIRE((outcome == SQLITE_OK || outcome == SQLITE_BUSY));
        REQUIRE(std::chrono::steady_clock::now() < deadline);
        std::this_thread::yield();
    }
    REQUIRE(sqlite3_close(reader) == SQLITE_OK);
}

TEST_CASE("records that come in a row are committed together", "[store]") {
    Fixture fixture;
    const auto store = fixture.open();
    // The write-ahead log grows with the changes of each commit.
    const auto written = [&](int first, bool ask_each) {
        const auto before = std::filesystem::file_size(fixture.path + "-wal");
        for (int number = first; number < first + 50; ++number) {
            store->put(execution("exe_" + std::to_string(number)));
            if (ask_each) {
                (void)run(store->find_execution("exe_0"));
            }
        }
        (void)run(store->find_execution("exe_0"));
        return std::filesystem::file_size(fixture.path + "-wal") - before;
    };
    (void)written(0, false);
    const auto apart = written(100, true);
    const auto together = written(200, false);
    CHECK(together < apart / 4);
}

TEST_CASE(
    "an execution that ends before the commit is one row, in its beginning's place", "[store]") {
    Fixture fixture;
    StoreLimits limits;
    limits.queue_max = 3;  // what takes the place of another needs none of its own
    const auto store = fixture.open(limits);
    store->put(execution("exe_0"));
    (void)run(store->find_execution("exe_0"));  // the next commit is a whole period away
    store->put(execution("exe_1", ""));
    store->put(execution("exe_2", ""));
    store->put(execution("exe_2"));
    store->put(execution("exe_1", "error"));
    store->put(execution("exe_1", ""));  // too late
    store->put(execution("exe_3", ""));
    CHECK(store->lost() == 0);
    const auto listed = run(store->list_executions("ses_1", "exe_0", 9));
    REQUIRE(listed.size() == 3);
    CHECK(listed[0].id == "exe_1");
    CHECK(listed[0].status == "error");
    CHECK(listed[1].id == "exe_2");
    CHECK(listed[1].status == "ok");
    CHECK(listed[2].id == "exe_3");
    CHECK(listed[2].status.empty());
}

TEST_CASE("a longer end counts against the queue's bytes, and is lost past them", "[store]") {
    Fixture fixture;
    StoreLimits limits;
    limits.queue_bytes_max = 8192;
    const auto store = fixture.open(limits);
    store->put(execution("exe_0"));
    (void)run(store->find_execution("exe_0"));
    store->put(execution("exe_1", ""));
    ExecutionRecord end = execution("exe_1", "error");
    end.error_message = std::string(8192, 'e');
    store->put(end);
    CHECK(store->lost() == 1);
    end.error_message = "short";
    store->put(end);
    CHECK(store->lost() == 1);
    CHECK(run(store->find_execution("exe_1"))->error_message == "short");
}

TEST_CASE("without a question the next commit is a period after the last one", "[store]") {
    // kCommitPeriod: a server under load commits ten times a second, not for each run.
    Fixture fixture;
    const auto store = fixture.open();
    const auto begun = std::chrono::steady_clock::now();
    store->put(execution("exe_0"));
    (void)run(store->find_execution("exe_0"));
    store->put(execution("exe_1"));
    wait_for_rows(fixture.path, 2);
    CHECK(std::chrono::steady_clock::now() - begun >= kCommitPeriod);
    // A read does not wait for it.
    store->put(execution("exe_2"));
    CHECK(run(store->find_execution("exe_2")).has_value());
}

/// Stores the test's records and then waits to be killed.
[[noreturn]] void run_victim(const std::string& path, int ready) {
    auto opened = Store::open(path, [](const std::string&) {});
    if (opened.has_error()) {
        ::_exit(1);
    }
    const auto store = std::move(opened).value();
    store->put(execution("exe_done"));
    store->put(execution("exe_running", ""));
    (void)run_any(store->find_execution("exe_done"));  // answered once both are committed
    store->put(execution("exe_unasked"));
    if (::write(ready, "r", 1) != 1) {
        ::_exit(1);
    }
    for (;;) {
        ::pause();
    }
}

TEST_CASE("SIGKILL loses nothing that was committed", "[store]") {
    Fixture fixture;
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    const pid_t victim = ::fork();
    REQUIRE(victim >= 0);
    if (victim == 0) {
        run_victim(fixture.path, ends[1]);
    }
    REQUIRE(::close(ends[1]) == 0);
    char byte = 0;
    REQUIRE(::read(ends[0], &byte, 1) == 1);
    REQUIRE(::close(ends[0]) == 0);
    wait_for_rows(fixture.path, 3);  // committed in time, also without a read
    REQUIRE(::kill(victim, SIGKILL) == 0);
    int status = 0;
    REQUIRE(::waitpid(victim, &status, 0) == victim);
    REQUIRE(WIFSIGNALED(status));

    const auto store = fixture.open();
    CHECK(fixture.lines.empty());  // it is a sound file
    CHECK(run(store->find_execution("exe_done"))->status == "ok");
    CHECK(run(store->find_execution("exe_unasked"))->status == "ok");
    CHECK(run(store->find_execution("exe_running"))->error_kind == "server_died");
}

}  // namespace
}  // namespace cellkeep::store
