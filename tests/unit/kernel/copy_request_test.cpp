// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/process/copy_request.hpp"

#include "protocol/internal_request.hpp"
#include "tests/support/fake_interpreter.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <catch2/catch.hpp>

#include <fcntl.h>

#include <optional>

namespace cellkeep::session {
namespace {

using namespace std::chrono_literals;
using protocol::Channel;
using protocol::Message;
using test::FakeInterpreter;
using test::FakeProcess;
using Asked = std::optional<CopyRequest::Answer>;

struct CopyRequestFixture {
    boost::asio::io_context io;
    CopyRequest request{io};
    std::shared_ptr<FakeProcess> process = std::make_shared<FakeProcess>();

    /// `asked` must live longer than the wait.
    void ask(
        Asked& asked,
        checkpoint::OnThreads on_threads = checkpoint::OnThreads::kRefuse,
        std::chrono::milliseconds patience = limits::kCopyPatience) {
        boost::asio::co_spawn(
            io,
            keep(
                request.ask(
                    std::make_shared<FakeInterpreter>(process),
                    ServerMessages("server"),
                    UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC)),
                    on_threads,
                    patience),
                asked),
            boost::asio::detached);
        poll();
    }
    static boost::asio::awaitable<void> keep(
        boost::asio::awaitable<CopyRequest::Answer> answer, Asked& asked) {
        asked.emplace(co_await std::move(answer));
    }
    void poll() {
        io.restart();
        (void)io.poll();
    }
    Message reply(Channel channel = Channel::kControl) const {
        return test::answer(
            process->sent.back(),
            channel,
            "cellkeep_checkpoint_reply",
            {{"status", "ok"},
             {"pid", 7},
             {"execution_count", 1},
             {"carried_threads", 0},
             {"goes_on", false},
             {"lost", {{"threads", 0}, {"children", 0}, {"sockets", 0}, {"shared_mappings", 0}}}});
    }
};

TEST_CASE("an interpreter is asked for a copy, with a descriptor", "[session][checkpoint]") {
    CopyRequestFixture fixture;
    const bool drops = GENERATE(false, true);
    Asked asked;
    fixture.ask(asked, drops ? checkpoint::OnThreads::kDrop : checkpoint::OnThreads::kRefuse);
    CHECK(fixture.request.is_pending());
    REQUIRE(fixture.process->sent.size() == 1);
    const Message& sent = fixture.process->sent.front();
    CHECK(sent.channel() == Channel::kControl);
    CHECK(sent.header().msg_type == protocol::kCheckpointRequest);
    CHECK(sent.parse_content().value()["on_threads"] == (drops ? "drop" : "refuse"));
    REQUIRE(fixture.process->descriptors.size() == 1);
    CHECK(fixture.process->descriptors.front());
    CHECK(fixture.request.take(fixture.reply()));
    fixture.poll();
    REQUIRE(asked.has_value());
    REQUIRE(asked->has_value());
    CHECK(std::get<checkpoint::Copied>(asked->value()).forked == 7);
    CHECK_FALSE(fixture.request.is_pending());
    CHECK_FALSE(fixture.request.take(fixture.reply()));  // once
}

TEST_CASE("what is no answer to the request is not taken", "[session][checkpoint]") {
    CopyRequestFixture fixture;
    Asked asked;
    fixture.ask(asked);
    const Message other =
        ServerMessages("x").request(Channel::kControl, "x", nlohmann::json::object());
    CHECK_FALSE(fixture.request.take(fixture.reply(Channel::kShell)));
    CHECK_FALSE(fixture.request.take(fixture.reply(Channel::kIopub)));
    CHECK_FALSE(fixture.request.take(
        test::answer(other, Channel::kControl, "cellkeep_checkpoint_reply", {{"status", "ok"}})));
    CHECK(fixture.request.is_pending());
    // Nonsense that is an answer is one.
    CHECK(fixture.request.take(test::answer(
        fixture.process->sent.back(), Channel::kControl, "anything", {{"status", "ok"}})));
    fixture.poll();
    REQUIRE(asked.has_value());
    CHECK(asked->error().code() == ErrorCode::kProtocol);
}

TEST_CASE("an interpreter that does not answer is not waited for", "[session][checkpoint]") {
    static_assert(limits::kCopyPatience == 10s);
    CopyRequestFixture fixture;
    Asked asked;
    ErrorCode expected = ErrorCode::kUnavailable;
    SECTION("in time") {
        expected = ErrorCode::kTimeout;
        fixture.ask(asked, checkpoint::OnThreads::kRefuse, 0ms);
        while (!asked.has_value()) {
            fixture.io.restart();
            (void)fixture.io.run_one();
        }
    }
    SECTION("because it is gone") {
        fixture.ask(asked);
        fixture.request.fail("it died");
        fixture.poll();
    }
    SECTION("because its link takes nothing") {
        expected = ErrorCode::kConflict;
        fixture.process->link = Error(ErrorCode::kConflict, "closed");
        fixture.ask(asked);
    }
    REQUIRE(asked.has_value());
    REQUIRE(asked->has_error());
    CHECK(asked->error().code() == expected);
    CHECK_FALSE(fixture.request.is_pending());
    CHECK(fixture.process->gone);  // it is not held by the request
}

}  // namespace
}  // namespace cellkeep::session
