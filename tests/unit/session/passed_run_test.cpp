// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/passing/passed_run.hpp"

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

namespace cellkeep::session {
namespace {

using nlohmann::json;

std::shared_ptr<Execution> make_execution(boost::asio::io_context& io) {
    Execution::Order order;
    order.id = "exe_1";
    order.passes = true;
    auto execution = std::make_shared<Execution>(io, std::move(order));
    execution->mark_started();
    return execution;
}

PassedRun full_run(std::shared_ptr<Execution> execution) {
    const auto bundle = std::make_shared<MimeBundle>(
        MimeBundle{protocol::RawJson(R"({"a":1})"), protocol::RawJson("{}")});
    PassedRun run{
        .message = protocol::Message::make(
            protocol::Channel::kShell,
            protocol::make_header("execute_request", "api", "user"),
            json::object(),
            {{"code", "1"}}),
        .execution = std::move(execution),
        .recorder = {},
        .timeout = std::chrono::milliseconds(7),
        .queued_at = std::chrono::steady_clock::now(),
        .request = {std::chrono::steady_clock::now(), std::chrono::microseconds(3)},
        .watch = {},
        .files = {}};
    run.recorder.stdout_text = std::string("no \xff UTF-8\0", 12);
    run.recorder.stdin_text = "left";
    run.recorder.clear_before_next = true;
    run.recorder.outputs.outputs = {DisplayOutput{bundle}, StreamOutput{"stdout", "x"}};
    run.recorder.outputs.groups = {{"d", {0}, 1, 10, 0}};
    run.recorder.outputs.bytes = 10;
    run.recorder.outputs.left_out = 2;
    run.watch.monitor.denials = {{"ptrace", 4}};
    run.watch.monitor.oom_kills_at_begin = 1;
    run.watch.paused = std::chrono::seconds(5);
    run.watch.counts_own_cpu = true;
    sandbox::FileState state;
    state.kind = sandbox::EntryKind::kFile;
    state.bytes = 9;
    state.changed = -1;
    run.files.listing.emplace("a/\xfe", state);
    run.files.complete = true;
    run.files.begun_at = 11;
    return run;
}

json through_cbor(const json& value) {
    return json::from_cbor(json::to_cbor(value));
}

TEST_CASE("what runs is the same in another program", "[session][passing]") {
    boost::asio::io_context io;
    const auto execution = make_execution(io);
    const json written = write_run(full_run(execution));
    const PassedRun read = read_run(through_cbor(written), [&](const std::string& id) {
        return id == "exe_1" ? execution : nullptr;
    });
    CHECK(write_run(read) == written);
    CHECK(read.execution == execution);
    CHECK(read.timeout == std::chrono::milliseconds(7));
    CHECK(read.recorder.stdout_text.size() == 12);
    CHECK(read.files.listing.at("a/\xfe").bytes == 9);
    CHECK(read.watch.monitor.denials.at(0).system_call == "ptrace");
    CHECK(read.message.header().msg_type == "execute_request");
}

TEST_CASE("what waits is the same in another program", "[session][passing]") {
    boost::asio::io_context io;
    Execution::Order order;
    order.id = "exe_1";
    const auto execution = std::make_shared<Execution>(io, std::move(order));
    const PassedRequest request{
        full_run(execution).message,
        execution,
        "to be read",
        std::chrono::milliseconds(7),
        std::chrono::steady_clock::now()};
    json written = write_waiting(request);
    const auto read = [&] {
        return read_waiting(through_cbor(written), [&](const std::string&) { return execution; });
    };
    CHECK(write_waiting(read()) == written);
    CHECK(read().stdin_text == "to be read");
    SECTION("its execution runs") {
        execution->mark_started();
    }
    SECTION("no text for input()") {
        written.erase("stdin");
    }
    SECTION("a timeout that is a text") {
        written["timeout"] = "7";
    }
    CHECK_THROWS_AS(read(), json::exception);
}

TEST_CASE("what is no run is not read", "[session][passing]") {
    boost::asio::io_context io;
    const auto execution = make_execution(io);
    json written = write_run(full_run(execution));
    std::shared_ptr<Execution> found = execution;
    const auto read = [&] {
        return read_run(written, [&found](const std::string&) { return found; });
    };
    CHECK_NOTHROW(read());
    SECTION("its execution is unknown") {
        found = nullptr;
    }
    SECTION("its execution has finished") {
        execution->finish({});
    }
    SECTION("no message") {
        written["message"] = "x";
    }
    SECTION("no recorder") {
        written.erase("recorder");
    }
    SECTION("a display whose place is a text") {
        written["recorder"]["outputs"]["groups"][0]["places"] = "0";
    }
    SECTION("a file without its state") {
        written["files"]["listing"][0] = json::array({"a"});
    }
    SECTION("a time that is none") {
        written["started_at"] = "now";
    }
    SECTION("a denial without its count") {
        written["watch"]["denials"][0].erase("count");
    }
    SECTION("no object") {
        written = json::array();
    }
    CHECK_THROWS_AS(read(), json::exception);
}

}  // namespace
}  // namespace cellkeep::session
