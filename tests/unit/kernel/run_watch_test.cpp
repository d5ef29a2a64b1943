// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/run_watch.hpp"

#include "protocol/limits.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <optional>
#include <vector>

namespace cellkeep::session {
namespace {

using namespace std::chrono_literals;
using protocol::Channel;
using protocol::Message;
using std::chrono::steady_clock;
using CutStep = RunningRequest::CutStep;

struct WatchFixture {
    boost::asio::io_context io;
    SessionLimits limits;
    SessionAccount account{0};
    std::shared_ptr<int> owner = std::make_shared<int>(0);
    sandbox::Usage usage;
    int whole_readings = 0;
    std::optional<std::chrono::microseconds> own_cpu;
    std::chrono::nanoseconds paused = 5h;  // of earlier runs
    std::vector<Cut> cuts;
    std::vector<Death::Kind> kills;
    std::function<void()> on_cut = [] {};
    std::optional<RunningRequest> run;
    RunWatch watch{
        io,
        limits,
        account,
        {.session =
             [this] {
                 ++whole_readings;
                 return usage;
             },
         .at_begin = [this] { return usage; },
         .session_cpu = [this] { return usage.cpu_time; },
         .own_cpu = [this] { return own_cpu; },
         .paused_for = [this](RunWatch::Time /*now*/) { return paused; }},
        {.cut =
             [this](Cut cut) {
                 cuts.push_back(cut);
                 on_cut();
             },
         .kill = [this](const Death& why) { kills.push_back(why.kind); }},
        [this] { return owner; }};

    /// Begins a run; `began` is how long ago.
    void begin(std::chrono::milliseconds began = 0ms, std::uint64_t number = 1) {
        RunWatch::Start start = watch.begin();
        start.at -= began;
        run.emplace(
            PendingRequest{
                Message::make(
                    Channel::kShell,
                    protocol::make_header("execute_request", "client", "user"),
                    nlohmann::json::object(),
                    {{"code", "1"}}),
                nullptr,
                nullptr,
                start.at},
            number,
            start.at,
            start.cpu);
        run->on_sent();
        (void)run->on_busy();
        start.at += began;
        watch.watch(*run, start);
    }
    void poll() {
        io.restart();
        (void)io.poll();
    }
    template <typename Condition>
    void until(Condition condition) {
        while (!condition()) {
            io.restart();
            REQUIRE(io.run_one() == 1);
        }
    }
};

TEST_CASE("a run is cut at its wall limit", "[session][watch]") {
    WatchFixture fixture;
    SECTION("when the time comes") {
        fixture.limits.wall = 2ms;
        fixture.begin();
        CHECK(fixture.cuts.empty());
        fixture.until([&] { return !fixture.cuts.empty(); });
    }
    SECTION("at once if there is none left") {
        fixture.limits.wall = 0ms;
        fixture.begin();
    }
    CHECK(fixture.cuts == std::vector<Cut>{Cut::kWallTimeout});
}

TEST_CASE("a pause is not the run's time", "[session][watch]") {
    WatchFixture fixture;
    fixture.limits.wall = 2ms;
    const auto begun = std::chrono::steady_clock::now();
    fixture.begin();
    fixture.paused += 20ms;
    fixture.until([&] { return !fixture.cuts.empty(); });
    CHECK(fixture.cuts == std::vector<Cut>{Cut::kWallTimeout});
    CHECK(std::chrono::steady_clock::now() - begun >= 22ms);
}

TEST_CASE("a run is cut at its CPU limit and not before", "[session][watch]") {
    WatchFixture fixture;
    fixture.limits.cpu = 20ms;
    fixture.usage.cpu_time = 7s;  // of earlier runs
    fixture.begin();
    fixture.usage.cpu_time = 7s + 19ms;
    int looks = 0;
    fixture.until([&] { return ++looks > 1; });
    CHECK(fixture.cuts.empty());
    fixture.usage.cpu_time = 7s + 20ms;
    fixture.until([&] { return !fixture.cuts.empty(); });
    CHECK(fixture.cuts == std::vector<Cut>{Cut::kCpuTimeout});
}

TEST_CASE("a run that is over, or whose kernel has exited, is not looked at", "[session][watch]") {
    WatchFixture fixture;
    fixture.limits.wall = 1ms;
    fixture.limits.cpu = 1ms;
    fixture.begin();
    SECTION("over") {
        fixture.watch.forget();
    }
    SECTION("exited") {
        fixture.watch.stop_timers();
    }
    SECTION("its session is being destroyed") {
        fixture.owner.reset();
    }
    fixture.io.restart();
    (void)fixture.io.run();  // whatever is set comes
    CHECK(fixture.cuts.empty());
}

TEST_CASE("a deadline during an interrupt is the reason of the cut", "[session][watch]") {
    WatchFixture fixture;
    fixture.limits.wall = 3ms;
    fixture.limits.cpu = 3ms;  // of which it uses none; its alarm ends once more
    fixture.begin();
    CHECK(fixture.run->interrupt() == CutStep::kInterrupt);
    fixture.until([&] { return !fixture.cuts.empty(); });
    CHECK(fixture.cuts == std::vector<Cut>{Cut::kWallTimeout});
    CHECK(fixture.watch.cut_short(Cut::kWallTimeout) == CutStep::kInterrupt);
    CHECK(fixture.run->cut() == Cut::kWallTimeout);
    CHECK_FALSE(fixture.watch.describe_cut().empty());
    const auto hit = fixture.watch.settle(std::nullopt);  // it stops in its grace
    fixture.watch.forget();
    REQUIRE(hit.has_value());
    CHECK(hit->reason == LimitReason::kWallTimeout);
    fixture.io.restart();
    (void)fixture.io.run();
    CHECK(fixture.kills.empty());
}

TEST_CASE("a kernel whose grace is over is killed", "[session][watch]") {
    WatchFixture fixture;
    fixture.limits.wall = 1ms;
    SECTION("at once if the deadline is long past") {
        fixture.begin(limits::kInterruptGraceMax * 10);
        (void)fixture.watch.cut_short(Cut::kWallTimeout);
        fixture.watch.begin_grace();
    }
    SECTION("when it had its time and its CPU time") {
        fixture.begin();
        (void)fixture.watch.cut_short(Cut::kWallTimeout);
        fixture.usage.cpu_time += limits::kInterruptCpuGrace;
        fixture.watch.begin_grace();
        fixture.until([&] { return !fixture.kills.empty(); });
    }
    CHECK(fixture.kills == std::vector<Death::Kind>{Death::Kind::kWallTimeout});
}

TEST_CASE("one limit is the reason, whatever else passes", "[session][watch]") {
    WatchFixture fixture;
    fixture.limits.cpu = 10ms;
    fixture.begin();
    (void)fixture.watch.cut_short(Cut::kOutputLimit);
    fixture.usage.cpu_time += 1h;
    int looks = 0;
    fixture.until([&] { return ++looks > 1; });  // the timer of the CPU limit
    CHECK(fixture.cuts.empty());
    CHECK(fixture.watch.settle(std::nullopt)->reason == LimitReason::kOutputLimit);
}

TEST_CASE("output beyond its bound cuts the run, or kills a kernel at rest", "[session][watch]") {
    WatchFixture fixture;
    fixture.watch.count_output(1000);
    CHECK(fixture.kills.empty());
    const std::uint64_t flood = 1ULL << 40U;
    SECTION("a run") {
        fixture.begin();
        fixture.watch.count_output(flood);
        fixture.watch.count_output(flood);  // said once
        CHECK(fixture.cuts == std::vector<Cut>{Cut::kOutputLimit});
        CHECK(fixture.kills.empty());
    }
    SECTION("a run that is being cut for a limit") {
        fixture.begin();
        (void)fixture.watch.cut_short(Cut::kWallTimeout);
        fixture.watch.count_output(flood);
        CHECK(fixture.cuts.empty());
    }
    SECTION("nothing that could be interrupted") {
        fixture.watch.count_output(flood);
        CHECK(fixture.kills == std::vector<Death::Kind>{Death::Kind::kOutputLimit});
    }
}

TEST_CASE(
    "another run that begins in place of one is not judged by its times", "[session][watch]") {
    WatchFixture fixture;
    fixture.limits.wall = 0ms;
    fixture.limits.cpu = 1h;
    fixture.on_cut = [&fixture] {
        if (fixture.cuts.size() > 1) {
            return;
        }
        (void)fixture.watch.settle(std::nullopt);
        fixture.watch.forget();
        fixture.limits.wall = 1h;
        fixture.limits.cpu = 0ms;
        fixture.usage.cpu_time = 0us;
        fixture.begin(0ms, 2);
    };
    fixture.begin(0ms, 1);
    // The second run has passed its CPU limit: its own look reports that, once.
    CHECK(fixture.cuts == std::vector<Cut>{Cut::kWallTimeout, Cut::kCpuTimeout});
}

TEST_CASE("a run is charged its own CPU time from when others come", "[session][watch]") {
    WatchFixture fixture;
    fixture.usage.cpu_time = 10s;
    fixture.watch.count_own_cpu();  // its own CPU time is not known yet
    CHECK_FALSE(fixture.watch.counts_own_cpu());
    fixture.begin();
    fixture.usage.cpu_time = 12s;
    fixture.own_cpu = 3s;
    fixture.watch.count_own_cpu();
    CHECK(fixture.watch.counts_own_cpu());
    fixture.own_cpu = 4s;
    fixture.usage.cpu_time = 50s;  // others work
    (void)fixture.watch.settle(std::nullopt);
    CHECK(fixture.run->measure(steady_clock::now(), std::nullopt).cpu == 3s);
    fixture.watch.forget();
    CHECK(fixture.watch.begin().cpu == 4s);
    fixture.own_cpu.reset();  // its counter is gone
    CHECK(fixture.watch.begin().cpu == 50s);
}

TEST_CASE("a run without a limit ends with none", "[session][watch]") {
    WatchFixture fixture;
    fixture.usage.oom_kills = 3;
    CHECK(fixture.watch.begin().oom_kills == 3);
    fixture.begin();
    CHECK_FALSE(fixture.watch.settle(std::nullopt).has_value());
    fixture.watch.forget();
    CHECK(fixture.whole_readings == 0);  // one that failed would ask for more than its CPU time
    fixture.begin();
    fixture.usage.oom_kills = 4;
    const auto hit = fixture.watch.settle(Death{Death::Kind::kOom, 0});
    CHECK(fixture.whole_readings == 1);
    REQUIRE(hit.has_value());
    CHECK(hit->reason == LimitReason::kOom);
}

TEST_CASE(
    "a run that passes is charged by the clock by which it began", "[session][run][passing]") {
    WatchFixture left;
    left.limits.cpu = 60s;
    left.own_cpu = 2s;
    left.usage.cpu_time = 2s;
    left.watch.count_own_cpu();
    left.begin();
    const RunningRequest::Passed request = left.run->pass_on();
    const RunWatch::Passed passed = left.watch.pass_on();
    CHECK(passed.counts_own_cpu);

    WatchFixture next;
    next.limits.cpu = 60s;
    next.own_cpu = 5s;
    next.usage.cpu_time = 75s;  // another language's, for the most part
    next.run.emplace(RunningRequest::go_on(
        {left.run->message(), nullptr, nullptr, left.run->request().queued_at}, 1, request));
    next.watch.go_on(*next.run, passed);
    CHECK(next.cuts.empty());
    next.watch.count_own_cpu();  // when the other language's kernel goes on
    CHECK(next.run->cpu_used(5s) == 3s);
    CHECK_FALSE(next.watch.settle(std::nullopt).has_value());
    CHECK(next.run->measure(steady_clock::now(), std::nullopt).cpu == 3s);
}

}  // namespace
}  // namespace cellkeep::session
