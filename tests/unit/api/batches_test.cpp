// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/batches.hpp"

#include "tests/unit/api/agent_api.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::api::test {
namespace {

using nlohmann::json;
using session::ExecutionStatus;
using std::chrono::milliseconds;

/// Batches of fresh sessions that the test holds in its hands.
struct Desk {
    Desk() {
        backend.ends_what_runs = true;
        backend.on_made = [this](const std::shared_ptr<FakeSession>& session) {
            session->finishes = false;
            made.push_back(session);
        };
    }
    ~Desk() {
        for (const auto& one : begun) {
            one->stop("deleted");
        }
        poll();
    }
    Desk(const Desk&) = delete;
    Desk& operator=(const Desk&) = delete;

    BatchOrder order(std::size_t items) const {
        BatchOrder order;
        order.items.resize(items);
        for (std::size_t i = 0; i < items; ++i) {
            order.items[i].request.code = std::to_string(i);
        }
        return order;
    }
    Result<std::shared_ptr<BatchRun>> begin(BatchOrder wanted, const std::string& owner = "alice") {
        auto made_one = batches.begin(backend.io.get_executor(), owner, {}, std::move(wanted));
        if (made_one.has_value()) {
            begun.push_back(made_one.value());
        }
        poll();
        return made_one;
    }
    void poll() {
        backend.io.restart();
        (void)backend.io.poll();
    }
    /// The execution of the n-th session that was made.
    void finish(std::size_t number, ExecutionStatus status = ExecutionStatus::kOk) {
        FakeSession& session = *made.at(number);
        session.outcome = status;
        session.executions.at(0)->finish(session.answer_of(*session.executions.at(0)));
        poll();
    }
    /// Those that are there.
    std::vector<json> lines(const std::shared_ptr<BatchRun>& batch) {
        std::vector<json> all;
        for (;;) {
            BatchRun::Line line;
            const auto read = [&]() -> boost::asio::awaitable<void> {
                const std::size_t number = all.size();
                std::function<bool()> at_once = [] { return true; };
                line = co_await batch->wait_for_line(number, std::move(at_once));
            };
            boost::asio::co_spawn(backend.io, read, boost::asio::detached);
            poll();
            if (line == nullptr) {
                return all;
            }
            all.push_back(json::parse(*line));
        }
    }

    FakeSessionService backend;
    History history{nullptr};
    Batches batches{{backend, history}};
    std::vector<std::shared_ptr<FakeSession>> made;
    std::vector<std::shared_ptr<BatchRun>> begun;
};

TEST_CASE("a batch runs so many items at a time, and losers are gone", "[agent][batch]") {
    Desk desk;
    BatchOrder order = desk.order(3);
    order.concurrency = 2;
    order.items[1].label = "b";
    order.items[2].has_code = false;
    order.code = "common";
    const auto batch = desk.begin(std::move(order)).value();
    CHECK(desk.made.size() == 2);
    CHECK(batch->describe()["state"] == "running");
    desk.finish(1, ExecutionStatus::kError);
    REQUIRE(desk.made.size() == 3);
    CHECK(desk.made[2]->requests[0].code == "common");
    CHECK(desk.backend.find("ses_2") == nullptr);
    CHECK(desk.backend.asked[0].owner == "alice");
    auto lines = desk.lines(batch);
    REQUIRE(lines.size() == 1);
    CHECK(lines[0]["index"] == 1);
    CHECK(lines[0]["label"] == "b");
    CHECK(lines[0]["status"] == "error");
    CHECK(lines[0]["reason"] == "runtime");
    CHECK(lines[0]["session_id"].is_null());
    CHECK(lines[0]["metrics"].contains("wall_ms"));
    CHECK(lines[0]["execution"]["stdout"] == "out");
    desk.finish(0);
    desk.finish(2);
    CHECK(desk.backend.sessions.empty());
    lines = desk.lines(batch);
    REQUIRE(lines.size() == 4);
    const json& summary = lines[3]["summary"];
    CHECK(summary["state"] == "finished");
    CHECK(summary["counts"] == json{{"error", 1}, {"ok", 2}});
    CHECK(summary["winner"] == 0);
    CHECK(summary["kept"].empty());
    CHECK(summary["stopped_by"].is_null());
    CHECK(summary["from"].is_null());
}

TEST_CASE(
    "a batch stops at the first success or error, and keeps what was asked", "[agent][batch]") {
    Desk desk;
    BatchOrder order = desk.order(5);
    order.concurrency = 3;
    order.stop_on = BatchOrder::StopOn::kFirstSuccess;
    order.keep = BatchOrder::Keep::kWinner;
    const auto batch = desk.begin(std::move(order)).value();
    desk.finish(0, ExecutionStatus::kTimeout);
    desk.finish(2);
    CHECK(batch->is_finished());
    auto lines = desk.lines(batch);
    json summary = lines.back()["summary"];
    CHECK(summary["winner"] == 2);
    CHECK(summary["kept"] == json::array({"ses_3"}));
    CHECK(summary["stopped_by"] == "first_success");
    CHECK(summary["counts"] == json{{"ok", 1}, {"stopped", 2}, {"timeout", 1}});
    CHECK(summary["done"] == 4);
    REQUIRE(desk.backend.sessions.size() == 1);
    CHECK(desk.backend.sessions[0]->id() == "ses_3");
    for (const json& line : lines) {
        if (line.value("status", "") == "stopped") {
            CHECK(line["reason"] == "first_success");
        }
    }
    // The other way round.
    order = desk.order(3);
    order.concurrency = 2;
    order.stop_on = BatchOrder::StopOn::kFirstError;
    order.keep = BatchOrder::Keep::kAll;
    const std::size_t before = desk.made.size();
    const auto strict = desk.begin(std::move(order)).value();
    desk.finish(before);
    desk.finish(before + 1, ExecutionStatus::kOom);
    summary = desk.lines(strict).back()["summary"];
    CHECK(summary["stopped_by"] == "first_error");
    CHECK(summary["kept"].size() == 2);
    CHECK(summary["counts"]["stopped"] == 1);
}

TEST_CASE("all runs of a batch have one budget", "[agent][batch]") {
    Desk desk;
    BatchOrder order = desk.order(4);
    order.concurrency = 2;
    order.wall_budget = milliseconds(100);
    for (BatchItem& item : order.items) {
        item.request.timeout = milliseconds(60);
    }
    const auto batch = desk.begin(std::move(order)).value();
    const auto timeout_of = [&](std::size_t number) {
        return desk.made.at(number)->requests.at(0).timeout;
    };
    REQUIRE(desk.made.size() == 2);
    CHECK(timeout_of(0) == milliseconds(60));
    CHECK(timeout_of(1) == milliseconds(40));
    // What is left over is given to the next.
    desk.made[0]->wall = std::chrono::microseconds(9'500);
    desk.finish(0);
    REQUIRE(desk.made.size() == 3);
    CHECK(timeout_of(2) == milliseconds(50));
    desk.made[1]->wall = milliseconds(41);
    desk.finish(1, ExecutionStatus::kTimeout);
    CHECK(desk.made.size() == 3);
    CHECK_FALSE(batch->is_finished());
    desk.made[2]->wall = milliseconds(50);
    desk.finish(2);
    CHECK(batch->is_finished());
    const json summary = desk.lines(batch).back()["summary"];
    CHECK(summary["stopped_by"] == "budget");
    CHECK(summary["wall_ms"] == 101);
    CHECK(summary["budget"] == json{{"wall_ms", 100}});
    CHECK(summary["counts"] == json{{"ok", 2}, {"stopped", 1}, {"timeout", 1}});
}

TEST_CASE("an item for which there is no room waits for the others", "[agent][batch]") {
    Desk desk;
    BatchOrder order = desk.order(2);
    const auto prepared = desk.backend.on_made;
    desk.backend.on_made = [&](const std::shared_ptr<FakeSession>& session) {
        prepared(session);
        desk.backend.failure = Error(ErrorCode::kLimitExceeded, "too many sessions");
    };
    const auto batch = desk.begin(std::move(order)).value();
    REQUIRE(desk.made.size() == 1);
    CHECK(desk.lines(batch).empty());
    desk.backend.failure.reset();
    desk.finish(0);
    REQUIRE(desk.made.size() == 2);
    desk.finish(1);
    CHECK(desk.lines(batch).back()["summary"]["counts"] == json{{"ok", 2}});
    // Alone it is refused.
    const auto full = desk.begin(desk.order(1)).value();
    const json line = desk.lines(full).front();
    CHECK(line["status"] == "refused");
    CHECK(line["reason"] == "/problems/limit-reached");
    CHECK(line["error"]["status"] == 429);
    CHECK(line["execution"].is_null());
    CHECK(full->is_finished());
}

TEST_CASE("an answer that is too long is left out of its line", "[agent][batch]") {
    Desk desk;
    BatchOrder order = desk.order(40);
    order.concurrency = 1;
    const std::size_t most = kBatchAnswerBytesMax - 4096;
    const auto batch = desk.begin(std::move(order)).value();
    for (std::size_t i = 0; i < 40; ++i) {
        FakeSession& session = *desk.made.at(i);
        auto result = session.answer_of(*session.executions.at(0));
        result.stdout_text = std::string(i == 0 ? kBatchAnswerBytesMax : most, 'x');
        session.executions.at(0)->finish(std::move(result));
        desk.poll();
    }
    const auto lines = desk.lines(batch);
    REQUIRE(lines.size() == 41);
    CHECK(lines[0]["omitted"] == true);
    CHECK(lines[0]["execution"].is_null());
    CHECK(lines[0]["execution_id"].is_string());
    CHECK(lines[1]["omitted"] == false);
    CHECK(lines[1]["execution"]["stdout"].get<std::string>().size() == most);
    // Nor is there room for all of them.
    CHECK(lines[39]["omitted"] == true);
    CHECK(lines[39]["status"] == "ok");
    std::size_t bytes = 0;
    for (const json& line : lines) {
        bytes += line.dump().size();
    }
    CHECK(bytes < kBatchLinesBytesMax + 40 * 1024);
}

TEST_CASE(
    "a principal has kBatchesRunningMax batches that run, and kBatchesKeptMax that have ended",
    "[agent][batch]") {
    Desk desk;
    std::vector<std::shared_ptr<BatchRun>> running;
    for (std::size_t i = 0; i < kBatchesRunningMax; ++i) {
        running.push_back(desk.begin(desk.order(1)).value());
    }
    const auto refused = desk.begin(desk.order(1));
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kLimitExceeded);
    CHECK(desk.begin(desk.order(1), "bob").has_value());
    running[1]->stop("deleted");
    desk.poll();
    CHECK(running[1]->is_finished());
    CHECK(running[1]->describe()["stopped_by"] == "deleted");
    const auto ids = desk.batches.running();
    CHECK(ids.size() == kBatchesRunningMax);  // bob's is one of them
    CHECK(std::count(ids.begin(), ids.end(), running[0]->id()) == 1);
    CHECK(std::count(ids.begin(), ids.end(), running[1]->id()) == 0);
    // Those that run are not forgotten for those that have ended.
    std::shared_ptr<BatchRun> newest;
    for (std::size_t i = 0; i < kBatchesKeptMax; ++i) {
        newest = desk.begin(desk.order(1)).value();
        newest->stop("deleted");
        desk.poll();
    }
    CHECK(desk.batches.find(running[0]->id()) == running[0]);
    CHECK(desk.batches.find(running[1]->id()) == nullptr);
    CHECK(desk.batches.find(newest->id()) == newest);
    desk.batches.forget(newest->id());
    CHECK(desk.batches.find(newest->id()) == nullptr);
}

}  // namespace
}  // namespace cellkeep::api::test
