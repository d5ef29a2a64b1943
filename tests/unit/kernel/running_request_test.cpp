// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/running_request.hpp"

#include "protocol/limits.hpp"
#include "tests/support/start_time.hpp"
#include "tests/support/temporary_workspace.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <string>

using cellkeep::Error;
using cellkeep::ErrorCode;
using cellkeep::protocol::Channel;
using cellkeep::protocol::make_header;
using cellkeep::protocol::Message;
using cellkeep::session::test::kStart;
using namespace cellkeep::session;
using nlohmann::json;
using namespace std::chrono_literals;
namespace limits = cellkeep::limits;

namespace {

using CutStep = RunningRequest::CutStep;

constexpr std::uint64_t kNumber = 7;

Message execute_request(const std::string& client = "client") {
    return Message::make(
        Channel::kShell,
        make_header("execute_request", client, "user"),
        json::object(),
        {{"code", "1"}});
}

Message input_request() {
    return Message::make(
        Channel::kStdin,
        make_header("input_request", "kernel", "user"),
        json::object(),
        {{"prompt", "?"}, {"password", false}});
}

Message input_reply(
    const std::string& client, const std::optional<Message>& question = std::nullopt) {
    return Message::make(
        Channel::kStdin,
        make_header("input_reply", client, "user"),
        question.has_value() ? cellkeep::protocol::to_json(question->header()) : json::object(),
        {{"value", "x"}});
}

RunningRequest make_request() {
    return {PendingRequest{execute_request(), nullptr, nullptr, kStart - 2s}, kNumber, kStart, 1s};
}

RunningRequest make_begun_request() {
    RunningRequest request = make_request();
    request.on_sent();
    CHECK_FALSE(request.on_busy());
    return request;
}

std::shared_ptr<FileWriting> make_writing(const cellkeep::test::TemporaryWorkspace& directory) {
    return std::make_shared<FileWriting>(
        directory.workspace(),
        std::vector<InputFile>{{.path = "a.txt", .bytes = "a", .from = "", .sha256 = ""}},
        nullptr);
}

}  // namespace

TEST_CASE("a request knows the answers to it from others", "[session][running]") {
    const RunningRequest request = make_request();
    const Message other = execute_request();
    const auto answer_to = [](const Message& asked) {
        return Message::make(
            Channel::kShell,
            make_header("execute_reply", "kernel", "user"),
            cellkeep::protocol::to_json(asked.header()),
            json::object());
    };
    CHECK(request.is_parent_of(answer_to(request.message())));
    CHECK_FALSE(request.is_parent_of(answer_to(other)));
    CHECK(request.number() == kNumber);
}

TEST_CASE("only the first reply counts", "[session][running]") {
    RunningRequest request = make_begun_request();
    CHECK_FALSE(request.is_replied());
    CHECK(request.on_reply());
    CHECK_FALSE(request.on_reply());
    CHECK(request.is_replied());
}

TEST_CASE("a question is answered once, by the client that was asked", "[session][running]") {
    RunningRequest request = make_begun_request();
    const Message question = input_request();
    CHECK_FALSE(request.take_input_reply(input_reply("client")));  // there was no question
    CHECK(request.on_input_request(question));
    REQUIRE(request.question().has_value());
    CHECK(request.question()->header().msg_id == question.header().msg_id);
    CHECK_FALSE(request.on_input_request(input_request()));  // one at a time
    CHECK_FALSE(request.take_input_reply(input_reply("another")));
    CHECK_FALSE(request.take_input_reply(input_reply("another", input_request())));
    CHECK(request.take_input_reply(input_reply("client")));
    CHECK_FALSE(request.question().has_value());
    CHECK_FALSE(request.take_input_reply(input_reply("client")));
    CHECK(request.on_input_request(question));
}

TEST_CASE("a client that took over a question may answer it", "[session][running]") {
    RunningRequest request = make_begun_request();
    const Message question = input_request();
    CHECK(request.on_input_request(question));
    CHECK(request.take_input_reply(input_reply("another", question)));
    CHECK_FALSE(request.take_input_reply(input_reply("client")));
}

TEST_CASE(
    "a client that vanishes during input leaves the deadline in force", "[session][running]") {
    RunningRequest request = make_begun_request();
    CHECK(request.on_input_request(input_request()));
    CHECK_FALSE(request.look_at_wall(kStart + 999ms, 1s, 1).passed);
    CHECK(request.look_at_wall(kStart + 1s, 1s, 1).passed);
    CHECK(request.wall_deadline() == kStart + 1s);
    CHECK(request.cut_short(Cut::kWallTimeout, kStart + 1s, 1s) == CutStep::kInterrupt);
    // Waiting for input uses no CPU time: the kill comes at the latest moment.
    CHECK_FALSE(request.look_at_grace(kStart + 1899ms, 1s, 1.0).passed);
    CHECK(request.look_at_grace(kStart + 1900ms, 1s, 1.0).passed);
}

TEST_CASE("the time that is left is when to look again", "[session][running]") {
    RunningRequest request = make_begun_request();
    CHECK(request.look_at_wall(kStart + 100ms, 1s, 1).again_in == 900ms);
    CHECK(request.look_at_wall(kStart + 100ms, 1s, 0).again_in == 900ms);
    CHECK(request.look_at_wall(kStart + 100ms, 1s, 3).again_in == 300ms);
    CHECK(request.look_at_wall(kStart + 1s - 1ns, 1s, 1).again_in == 1ms);
    CHECK(request.look_at_wall(kStart + 1s, 1s, 1).passed);
}

TEST_CASE("the CPU time that is left is shared by the cores", "[session][running]") {
    const RunningRequest request = make_begun_request();
    CHECK(request.look_at_cpu(1s + 100ms, 1s, 1.0).again_in == 900ms);
    CHECK(request.look_at_cpu(1s + 100ms, 1s, 2.0).again_in == 450ms);
    CHECK(request.look_at_cpu(1s + 999ms, 1s, 1.0).again_in == 10ms);
    CHECK_FALSE(request.look_at_cpu(2s - 1us, 1s, 1.0).passed);
    CHECK(request.look_at_cpu(2s, 1s, 1.0).passed);
    CHECK(request.look_at_cpu(1s, 1s, 0.0).again_in == 100s);
}

TEST_CASE("CPU time goes on where another clock begins", "[session][running]") {
    RunningRequest request = make_begun_request();
    CHECK(request.cpu_used(1500ms) == 500ms);
    request.change_cpu_clock(-900ms);
    CHECK(request.cpu_used(600ms) == 500ms);
}

TEST_CASE("an interrupt before busy waits for it, and is sent once", "[session][running]") {
    RunningRequest request = make_request();
    request.on_sent();
    CHECK(request.interrupt() == CutStep::kWait);
    CHECK(request.cut() == Cut::kInterrupt);
    CHECK(request.on_busy());
    CHECK_FALSE(request.on_busy());
    CHECK(request.interrupt() == CutStep::kInterrupt);
}

TEST_CASE("a deadline before busy waits for it too", "[session][running]") {
    RunningRequest request = make_request();
    request.on_sent();
    CHECK(request.cut_short(Cut::kCpuTimeout, kStart, 1s) == CutStep::kWait);
    CHECK(request.on_busy());
}

TEST_CASE("a deadline during an interrupt becomes the reason", "[session][running]") {
    RunningRequest request = make_begun_request();
    CHECK(request.interrupt() == CutStep::kInterrupt);
    CHECK(request.look_at_wall(kStart + 1s, 1s, 1).passed);
    CHECK(request.cut_short(Cut::kWallTimeout, kStart + 1s, 1s) == CutStep::kInterrupt);
    CHECK(request.cut() == Cut::kWallTimeout);
    // The grace counts from the deadline's interrupt.
    CHECK_FALSE(request.look_at_grace(kStart + 1499ms, 10s, 1.0).passed);
    CHECK(request.look_at_grace(kStart + 1500ms, 10s, 1.0).passed);
}

TEST_CASE("an interrupt after a deadline is sent and changes no reason", "[session][running]") {
    RunningRequest request = make_begun_request();
    CHECK(request.cut_short(Cut::kOutputLimit, kStart, 1s) == CutStep::kInterrupt);
    CHECK(request.interrupt() == CutStep::kInterrupt);
    CHECK(request.cut() == Cut::kOutputLimit);
}

TEST_CASE("what is cut while its files are written has not run", "[session][running]") {
    const cellkeep::test::TemporaryWorkspace directory;
    RunningRequest request = make_request();
    request.begin_writing(make_writing(directory));
    SECTION("by an interrupt") {
        CHECK(request.interrupt() == CutStep::kAbandon);
    }
    SECTION("by a deadline") {
        CHECK(request.cut_short(Cut::kWallTimeout, kStart + 1s, 1s) == CutStep::kAbandon);
    }
    CHECK_FALSE(request.is_sent());
    CHECK_FALSE(request.on_busy());  // no interrupt is left over
}

TEST_CASE("files that are in place change nothing about a later cut", "[session][running]") {
    const cellkeep::test::TemporaryWorkspace directory;
    RunningRequest request = make_request();
    request.begin_writing(make_writing(directory));
    request.end_writing();
    CHECK_FALSE(request.on_busy());
    CHECK(request.interrupt() == CutStep::kInterrupt);
}

TEST_CASE("a death while files are being written stops the writing", "[session][running]") {
    const cellkeep::test::TemporaryWorkspace directory;
    const auto writing = make_writing(directory);
    RunningRequest request = make_request();
    request.begin_writing(writing);
    SECTION("which puts the files in place otherwise") {
        CHECK(writing->run().has_value());
        CHECK(std::filesystem::exists(directory.path("a.txt")));
    }
    SECTION("and its request can be answered as one that never ran") {
        request.writing()->cancel();
        CHECK(writing->run().has_value());
        CHECK_FALSE(std::filesystem::exists(directory.path("a.txt")));
        CHECK_FALSE(request.is_sent());
        CHECK(request.measure(kStart + 1s, std::nullopt).wall == 1s);
        CHECK(request.take_request().queued_at == kStart - 2s);
    }
}

TEST_CASE("files that cannot be put in place leave their reason", "[session][running]") {
    RunningRequest request = make_request();
    CHECK_FALSE(request.refusal().has_value());
    request.refuse(Error(ErrorCode::kLimitExceeded, "full"));
    REQUIRE(request.refusal().has_value());
    CHECK(request.refusal()->code() == ErrorCode::kLimitExceeded);
}

TEST_CASE("the grace ends when time and CPU time have passed", "[session][running]") {
    RunningRequest request = make_begun_request();
    CHECK(request.look_at_wall(kStart + 1s, 1s, 1).passed);
    (void)request.cut_short(Cut::kWallTimeout, kStart + 1s, 2s);
    const auto at = [&](auto time, auto cpu) {
        return request.look_at_grace(kStart + 1s + time, 2s + cpu, 1.0);
    };
    CHECK(at(0ms, 0ms).again_in == limits::kInterruptGrace);
    CHECK_FALSE(at(499ms, 499ms).passed);  // it had its CPU time
    CHECK(at(499ms, 499ms).again_in == 1ms);
    CHECK(at(500ms, limits::kInterruptCpuGrace).passed);
    CHECK_FALSE(at(500ms, 249ms).passed);  // a busy machine: it had its time
    CHECK(at(500ms, 100ms).again_in == 150ms);
    CHECK(at(500ms, 249ms).again_in == 10ms);
    CHECK(at(800ms, 0ms).again_in == 100ms);  // no longer than at most
    CHECK_FALSE(at(899ms, 0ms).passed);
    CHECK(at(limits::kInterruptGraceMax, 0ms).passed);
}

TEST_CASE("a late look at the deadline takes its time from the grace", "[session][running]") {
    RunningRequest request = make_begun_request();
    CHECK(request.look_at_wall(kStart + 1700ms, 1s, 1).passed);
    (void)request.cut_short(Cut::kWallTimeout, kStart + 1700ms, 2s);
    CHECK(request.look_at_grace(kStart + 1700ms, 2s, 1.0).again_in == 200ms);
    CHECK(request.look_at_grace(kStart + 1900ms, 2s, 1.0).passed);
}

TEST_CASE("other limits than the wall time count from when they are found", "[session][running]") {
    RunningRequest request = make_begun_request();
    CHECK_FALSE(request.look_at_wall(kStart + 5s, 10s, 1).passed);
    (void)request.cut_short(Cut::kCpuTimeout, kStart + 5s, 2s);
    CHECK_FALSE(request.look_at_grace(kStart + 5899ms, 2s, 1.0).passed);
    CHECK(request.look_at_grace(kStart + 5900ms, 2s, 1.0).passed);
}

TEST_CASE("another CPU clock does not end the grace", "[session][running]") {
    RunningRequest request = make_begun_request();
    (void)request.cut_short(Cut::kCpuTimeout, kStart, 1s);
    request.change_cpu_clock(10s);
    CHECK_FALSE(request.look_at_grace(kStart + 500ms, 11s, 1.0).passed);
    CHECK(request.look_at_grace(kStart + 500ms, 11s + 250ms, 1.0).passed);
}

TEST_CASE("a request is measured", "[session][running]") {
    RunningRequest request = make_begun_request();
    CHECK(request.measure(kStart, std::nullopt).cpu == 0ms);  // never settled
    request.settle(1200ms);
    const ExecutionMetrics metrics = request.measure(kStart + 3s, 4096);
    CHECK(metrics.wall == 3s);
    CHECK(metrics.queued == 2s);
    CHECK(metrics.cpu == 200ms);
    CHECK(metrics.memory_peak_bytes == 4096);
    CHECK_FALSE(metrics.memory_peak_is_own);
    request.own_memory_peak();
    CHECK(request.measure(kStart, 1).memory_peak_is_own);
    CHECK_FALSE(request.measure(kStart, std::nullopt).memory_peak_is_own);
}
