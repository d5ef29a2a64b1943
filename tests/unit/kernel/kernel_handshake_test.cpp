// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/process/kernel_handshake.hpp"

#include "protocol/internal_request.hpp"
#include "tests/support/fake_interpreter.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <catch2/catch.hpp>

#include <optional>

namespace cellkeep::session {
namespace {

using protocol::Channel;
using protocol::Message;
using test::answer;
using test::status_of;
using Waited = std::optional<Status>;

struct HandshakeFixture {
    boost::asio::io_context io;
    KernelHandshake handshake{io};
    ServerMessages messages{"server"};

    /// `done` must live longer than the wait.
    void wait(boost::asio::awaitable<Status> wait, Waited& done) {
        boost::asio::co_spawn(io, keep(std::move(wait), done), boost::asio::detached);
        poll();
    }
    void poll() {
        io.restart();
        (void)io.poll();
    }
    static boost::asio::awaitable<void> keep(boost::asio::awaitable<Status> wait, Waited& done) {
        done.emplace(co_await std::move(wait));
    }
};

Message info_reply(const Message& question) {
    return answer(question, Channel::kShell, "kernel_info_reply", {{"status", "ok"}});
}

TEST_CASE("only the answer to the first question makes a process ready", "[session][handshake]") {
    HandshakeFixture fixture;
    fixture.handshake.begin();
    const Message question = fixture.handshake.ask(fixture.messages);
    const Message other =
        fixture.messages.request(Channel::kShell, "kernel_info_request", nlohmann::json::object());
    CHECK(fixture.handshake.take(info_reply(other)) == KernelHandshake::Taken::kNot);
    CHECK(fixture.handshake.take(status_of(other, "busy")) == KernelHandshake::Taken::kNot);
    CHECK(fixture.handshake.take(status_of(question, "busy")) == KernelHandshake::Taken::kDone);
    CHECK(
        fixture.handshake.take(
            answer(question, Channel::kStdin, "input_request", nlohmann::json::object())) ==
        KernelHandshake::Taken::kNot);
    CHECK(
        fixture.handshake.take(
            answer(question, Channel::kIopub, "stream", nlohmann::json::object())) ==
        KernelHandshake::Taken::kNot);
    CHECK_FALSE(fixture.handshake.info().has_value());
    CHECK(fixture.handshake.take(info_reply(question)) == KernelHandshake::Taken::kReady);
    CHECK(fixture.handshake.info().has_value());
    CHECK(fixture.handshake.take(info_reply(question)) == KernelHandshake::Taken::kNot);
    fixture.handshake.begin();
    CHECK_FALSE(fixture.handshake.info().has_value());
    CHECK(fixture.handshake.ask(fixture.messages).header().msg_id != question.header().msg_id);
}

TEST_CASE("a process that fails is not the last one", "[session][handshake]") {
    HandshakeFixture fixture;
    fixture.handshake.begin();
    Waited ready;
    Waited restarted;
    fixture.wait(fixture.handshake.wait_ready(), ready);
    fixture.wait(fixture.handshake.wait_restarted(), restarted);
    fixture.handshake.fail_process(Error(ErrorCode::kUnavailable, "it died"));
    fixture.poll();
    REQUIRE(ready.has_value());
    CHECK(ready->has_error());
    CHECK_FALSE(restarted.has_value());
    fixture.handshake.begin();
    fixture.handshake.settle(ok());
    fixture.poll();
    REQUIRE(restarted.has_value());
    CHECK(restarted->has_value());
    // The next restart has a new wait.
    Waited again;
    fixture.wait(fixture.handshake.wait_restarted(), again);
    CHECK_FALSE(again.has_value());
    fixture.handshake.settle(Error(ErrorCode::kCancelled, "the session has ended"));
    fixture.poll();
    REQUIRE(again.has_value());
    CHECK(again->has_error());
}

TEST_CASE("an adoption ends with its own answer", "[session][handshake]") {
    HandshakeFixture fixture;
    CHECK_FALSE(fixture.handshake.is_adopting());
    fixture.handshake.fail_adoption("there is none");
    const Message request =
        fixture.handshake.ask_adoption(fixture.messages, {{"env", nlohmann::json::object()}});
    CHECK(request.channel() == Channel::kControl);
    CHECK(request.header().msg_type == protocol::kAdoptRequest);
    CHECK(fixture.handshake.is_adopting());
    Waited adopted;
    fixture.wait(fixture.handshake.wait_adopted(std::chrono::hours(1)), adopted);
    const Message other =
        fixture.messages.request(Channel::kControl, "debug_request", nlohmann::json::object());
    CHECK(
        fixture.handshake.take(answer(other, Channel::kControl, "x", nlohmann::json::object())) ==
        KernelHandshake::Taken::kNot);
    CHECK_FALSE(adopted.has_value());
    const Message done = answer(request, Channel::kControl, "x", {{"status", "ok"}});
    CHECK(fixture.handshake.take(done) == KernelHandshake::Taken::kDone);
    fixture.poll();
    REQUIRE(adopted.has_value());
    CHECK(adopted->has_value());
    CHECK(fixture.handshake.take(done) == KernelHandshake::Taken::kNot);
}

}  // namespace
}  // namespace cellkeep::session
