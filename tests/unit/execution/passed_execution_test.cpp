// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/passing/passed_execution.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

using namespace cellkeep;
using namespace cellkeep::session;
using nlohmann::json;

namespace {

/// As it comes out of the other program.
json through_cbor(const json& value) {
    return json::from_cbor(json::to_cbor(value));
}

std::shared_ptr<Execution> read(boost::asio::io_context& io, const json& text) {
    return read_execution(io, text, [](const std::string&) { return OperatorAccess(); });
}

ExecutionResult full_result() {
    ExecutionResult result;
    result.id = "exe_1";
    result.session_id = "ses_1";
    result.status = ExecutionStatus::kError;
    result.execution_count = 7;
    result.stdout_text = std::string("no \xff UTF-8\0", 12);
    result.stderr_text = "err";
    result.result = protocol::RawJson(R"({"text/plain":"1"})");
    result.outputs = {
        StreamOutput{"stdout", R"(a\n)"},
        DisplayOutput{std::make_shared<MimeBundle>(
            MimeBundle{protocol::RawJson(R"({"a":1})"), protocol::RawJson("{}")})},
        ResultOutput{{protocol::RawJson("{}"), protocol::RawJson("{}")}, 7},
        ErrorOutput{
            protocol::RawJson(R"("E")"), protocol::RawJson(R"("v")"), protocol::RawJson("[]")}};
    result.error = ExecutionError{"runtime", "E", "v", 1, std::nullopt, {"t"}, "hint"};
    result.death = Death{Death::Kind::kSignal, 11};
    result.exit_code = 1;
    result.state_kept = false;
    result.restored = RestoredState{"chk_1", {"exe_0"}};
    result.truncated["stdout"] = {1, 2, ".cellkeep/x", ""};
    result.metrics.wall = std::chrono::microseconds(5);
    result.metrics.memory_peak_is_own = true;
    result.artifacts = {{"a/\xfe", Artifact::Change::kModified, 3, "00", "text/plain"}};
    result.artifacts_complete = false;
    result.reasoning = "why";
    result.metadata = {{"k", 1}};
    result.retained_bytes = 99;
    return result;
}

}  // namespace

TEST_CASE("a finished execution is the same one in another program", "[session][passing]") {
    boost::asio::io_context io;
    Execution::Order order;
    order.id = "exe_1";
    order.session_id = "ses_1";
    order.language = "python";
    order.code_sha256 = "ab";
    order.reasoning = "why";
    order.metadata = {{"k", 1}};
    Execution before(io, order);
    before.mark_started();
    before.add_event("stdout", protocol::TextPieces(R"({"text":"a"})"));
    before.finish(full_result());
    const json written = write_execution(before, 1000);
    const auto after = read(io, through_cbor(written));
    CHECK(write_execution(*after, 1000) == written);
    CHECK(after->phase() == ExecutionPhase::kFinished);
    CHECK(after->created_at() == before.created_at());
    CHECK(after->started_at() == before.started_at());
    CHECK(after->finished_at() == before.finished_at());
    CHECK(after->events().last_sequence() == 3);
    const ExecutionResult& result = *after->result();
    CHECK(result.stdout_text == before.result()->stdout_text);
    CHECK(result.outputs.size() == 4);
    CHECK(outputs_text(result.outputs).join() == outputs_text(before.result()->outputs).join());
    CHECK(result.error->line == 1);
    CHECK_FALSE(result.error->column);
    CHECK(result.death->detail == 11);
    CHECK(result.artifacts[0].path == "a/\xfe");
    CHECK(result.restored->undone == std::vector<std::string>{"exe_0"});
}

TEST_CASE("an execution whose code runs is the same one in another program", "[session][passing]") {
    boost::asio::io_context io;
    Execution::Order order;
    order.id = "exe_1";
    order.session_id = "ses_1";
    order.passes = true;
    Execution before(io, order);
    before.mark_started();
    before.add_event("stdout", protocol::TextPieces(R"({"text":"a"})"));
    REQUIRE(before.can_pass());
    const json written = write_execution(before, 1000);
    std::string asked;
    const auto after = read_execution(io, through_cbor(written), [&asked](const std::string& id) {
        asked = id;
        return OperatorAccess();
    });
    CHECK(asked == "exe_1");
    CHECK(write_execution(*after, 1000) == written);
    CHECK(after->phase() == ExecutionPhase::kRunning);
    CHECK(after->result() == nullptr);
    CHECK(after->can_pass());
    CHECK(after->started_at() == before.started_at());
    after->finish(full_result());
    CHECK(after->events().last_sequence() == 3);
    CHECK_FALSE(after->can_pass());
}

TEST_CASE("an execution that waits is the same one in another program", "[session][passing]") {
    boost::asio::io_context io;
    Execution::Order order;
    order.id = "exe_1";
    order.passes = true;
    Execution before(io, order);
    before.mark_queued();
    REQUIRE(before.can_pass());
    const json written = write_execution(before, 1000);
    const auto after = read(io, through_cbor(written));
    CHECK(write_execution(*after, 1000) == written);
    CHECK(after->phase() == ExecutionPhase::kQueued);
    CHECK_FALSE(after->started_at());
    after->mark_started();
    CHECK(after->events().last_sequence() == 2);
}

TEST_CASE("who waits for an execution that passes learns that", "[session][passing]") {
    boost::asio::io_context io;
    Execution execution(io, {});
    std::optional<FinishedExecution> answer;
    boost::asio::co_spawn(
        io, execution.wait(), [&answer](const std::exception_ptr&, FinishedExecution finished) {
            answer = std::move(finished);
        });
    (void)io.poll();
    CHECK_FALSE(answer.has_value());
    execution.pass_on();
    (void)io.poll();
    REQUIRE(answer.has_value());
    CHECK(*answer == nullptr);
    CHECK(io.stopped());
}

TEST_CASE("what may ask its caller for something does not pass", "[session][passing]") {
    boost::asio::io_context io;
    Execution::Order order;
    order.passes = true;
    SECTION("another kind of caller") {
        order.passes = false;
    }
    SECTION("a tool that is lent") {
        order.tools = {{"ask", "", json::object()}};
    }
    Execution execution(io, order);
    execution.mark_started();
    CHECK_FALSE(execution.can_pass());
}

TEST_CASE("what is no execution is not read", "[session][passing]") {
    boost::asio::io_context io;
    Execution before(io, {});
    before.finish({});
    json written = write_execution(before, 1000);
    CHECK_NOTHROW(read(io, written));
    SECTION("no result, and no word of one") {
        written.erase("result");
    }
    SECTION("a result of another type") {
        written["result"] = "text";
    }
    SECTION("a number that is none") {
        written["created_at"] = "now";
    }
    SECTION("an event without a number") {
        written["events"][0].erase("sequence");
    }
    SECTION("no object") {
        written = json::array();
    }
    CHECK_THROWS_AS(read(io, written), json::exception);
}
