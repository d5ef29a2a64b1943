// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/process/sleeping_copy.hpp"

#include "protocol/limits.hpp"
#include "protocol/support/syscall.hpp"
#include "sandbox/shared/sleep_messages.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <span>

namespace cellkeep::session {
namespace {

using namespace std::chrono_literals;
using sandbox::WakeReply;
using sandbox::WakeRequest;
using Woken = std::optional<Result<pid_t>>;

/// The test is the copy.
struct CopyFixture {
    CopyFixture() {
        auto pair = make_socket_pair(SOCK_SEQPACKET);
        REQUIRE(pair.has_value());
        REQUIRE(set_nonblocking(pair.value().first.get()).has_value());
        peer = std::move(pair.value().second);
        auto made = SleepingCopy::create(io, std::move(pair.value().first), {5, UniqueFd()}, true);
        REQUIRE(made.has_value());
        copy = std::move(made.value());
    }
    /// `woken` must live longer than the wait.
    void wake(Woken& woken, bool reseed = false, std::chrono::milliseconds patience = 1h) {
        boost::asio::co_spawn(
            io,
            keep(copy->wake({null.get(), null.get(), null.get()}, reseed, patience), woken),
            boost::asio::detached);
        poll();
    }
    void wait_asleep(std::optional<Status>& asleep, std::chrono::milliseconds patience = 1h) {
        boost::asio::co_spawn(
            io, keep_status(copy->wait_asleep(patience), asleep), boost::asio::detached);
        poll();
    }
    static boost::asio::awaitable<void> keep_status(
        boost::asio::awaitable<Status> wait, std::optional<Status>& status) {
        status.emplace(co_await std::move(wait));
    }
    static boost::asio::awaitable<void> keep(
        boost::asio::awaitable<Result<pid_t>> wake, Woken& woken) {
        woken.emplace(co_await std::move(wake));
    }
    void ask(boost::asio::awaitable<Status> wait, std::optional<Status>& answered) {
        boost::asio::co_spawn(io, keep_status(std::move(wait), answered), boost::asio::detached);
        poll();
    }
    WakeRequest take(std::size_t fds = sandbox::kWakeFds) const {
        WakeRequest request;
        auto got = receive_with_fds(peer.get(), std::as_writable_bytes(std::span(&request, 1)));
        REQUIRE(got.has_value());
        CHECK(got.value().bytes == sizeof(request));
        CHECK(got.value().fds.size() == fds);
        return request;
    }
    void say(const void* bytes, std::size_t size) {
        REQUIRE(::send(peer.get(), bytes, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size));
        poll();
    }
    void reply(std::uint32_t sequence, std::int32_t forked) {
        const WakeReply one{sequence, forked};
        say(&one, sizeof(one));
    }
    void poll() {
        io.restart();
        (void)io.poll();
    }
    template <typename T>
    void run_until(const std::optional<T>& there) {
        for (; !there.has_value(); (void)io.run_one()) {
            io.restart();
        }
    }

    boost::asio::io_context io;
    UniqueFd peer;
    UniqueFd null{::open("/dev/null", O_RDWR | O_CLOEXEC)};
    std::shared_ptr<SleepingCopy> copy;
};

TEST_CASE("a copy forks as often as it is asked to", "[session][checkpoint]") {
    CopyFixture fixture;
    CHECK(fixture.copy->worker() == 5);
    for (int forked = 10; forked < 12; ++forked) {
        Woken woken;
        fixture.wake(woken, forked == 11);
        const WakeRequest request = fixture.take();
        CHECK(request.reseed == (forked == 11 ? 1 : 0));
        CHECK_FALSE(woken.has_value());
        fixture.reply(request.sequence, forked);
        REQUIRE(woken.has_value());
        REQUIRE(woken->has_value());
        CHECK(woken->value() == forked);
    }
}

TEST_CASE("a copy makes a fork ready, once for each that goes on", "[session][checkpoint]") {
    CopyFixture fixture;
    CHECK(fixture.copy->prepares());
    std::optional<Status> prepared;
    fixture.ask(fixture.copy->prepare(1h), prepared);
    const WakeRequest request = fixture.take(0);
    CHECK(request.kind == sandbox::WakeKind::kPrepare);
    CHECK_FALSE(fixture.copy->is_ready());
    CHECK(fixture.copy->is_asked());
    fixture.reply(request.sequence, 11);
    REQUIRE(prepared.has_value());
    CHECK(prepared->has_value());
    CHECK(fixture.copy->is_ready());
    SECTION("it goes on") {
        Woken woken;
        fixture.wake(woken);
        CHECK_FALSE(fixture.copy->is_ready());
        fixture.reply(fixture.take().sequence, 11);
        REQUIRE(woken.has_value());
        CHECK(woken->has_value());
    }
    SECTION("it is let go") {
        std::optional<Status> gone;
        fixture.ask(fixture.copy->let_go(1h), gone);
        const WakeRequest last = fixture.take(0);
        CHECK(last.kind == sandbox::WakeKind::kLetGo);
        fixture.reply(last.sequence, 5);
        REQUIRE(gone.has_value());
        CHECK(gone->has_value());
        CHECK_FALSE(fixture.copy->is_ready());
    }
    SECTION("it is let go before another program has the copy") {
        PassedSleeper passed = fixture.copy->pass_on();
        const WakeRequest last = fixture.take(0);
        CHECK(last.kind == sandbox::WakeKind::kLetGo);
        CHECK_FALSE(passed.ready);
        const auto copy = SleepingCopy::go_on(fixture.io, std::move(passed));
        REQUIRE(copy.has_value());
        CHECK(copy.value()->prepares());
        fixture.copy = copy.value();
        Woken woken;
        fixture.wake(woken);
        fixture.reply(last.sequence, 5);
        CHECK_FALSE(woken.has_value());
        fixture.reply(fixture.take().sequence, 12);
        REQUIRE(woken.has_value());
        CHECK(woken->value() == 12);
    }
}

TEST_CASE("a copy that has not answered may have a fork ready", "[session][checkpoint]") {
    CopyFixture fixture;
    std::optional<Status> prepared;
    fixture.ask(fixture.copy->prepare(0ms), prepared);
    fixture.run_until(prepared);
    CHECK(prepared->error().code() == ErrorCode::kTimeout);
    CHECK(fixture.copy->is_ready());
    std::optional<Status> gone;
    const std::uint32_t late = fixture.take(0).sequence;
    fixture.ask(fixture.copy->let_go(1h), gone);
    fixture.reply(late, 11);
    fixture.reply(fixture.take(0).sequence, 5);
    REQUIRE(gone.has_value());
    CHECK_FALSE(fixture.copy->is_ready());
}

TEST_CASE("what is asked of a copy that is asked already comes next", "[session][checkpoint]") {
    CopyFixture fixture;
    Woken woken;
    std::optional<Status> prepared;
    fixture.wake(woken);
    fixture.ask(fixture.copy->prepare(1h), prepared);
    const WakeRequest first = fixture.take();
    WakeRequest none;
    CHECK(::recv(fixture.peer.get(), &none, sizeof(none), MSG_DONTWAIT) < 0);
    fixture.reply(first.sequence, 10);
    REQUIRE(woken.has_value());
    CHECK(woken->has_value());
    CHECK_FALSE(prepared.has_value());
    SECTION("and is answered") {
        fixture.reply(fixture.take(0).sequence, 11);
        REQUIRE(prepared.has_value());
        CHECK(prepared->has_value());
    }
    SECTION("or fails with the copy") {
        fixture.copy->close();
        fixture.poll();
        REQUIRE(prepared.has_value());
        CHECK(prepared->has_error());
    }
}

TEST_CASE("a copy that cannot fork beforehand has none ready", "[session][checkpoint]") {
    CopyFixture fixture;
    std::optional<Status> prepared;
    SECTION("it says so") {
        fixture.ask(fixture.copy->prepare(1h), prepared);
        fixture.reply(fixture.take(0).sequence, -EAGAIN);
    }
    SECTION("it ends") {
        fixture.ask(fixture.copy->prepare(1h), prepared);
        fixture.peer.reset();
        fixture.poll();
    }
    SECTION("it was closed before") {
        fixture.copy->close();
        fixture.ask(fixture.copy->prepare(1h), prepared);
    }
    REQUIRE(prepared.has_value());
    CHECK(prepared->has_error());
    CHECK_FALSE(fixture.copy->is_ready());
}

TEST_CASE("a copy that does not do what it should is found out", "[session][checkpoint]") {
    CopyFixture fixture;
    Woken woken;
    fixture.wake(woken);
    const WakeRequest request = fixture.take();
    ErrorCode expected = ErrorCode::kProtocol;
    SECTION("a short message") {
        fixture.say("abc", 3);
    }
    SECTION("a message that is too long by a byte") {
        const char text[sizeof(WakeReply) + 1]{};
        fixture.say(text, sizeof(text));
    }
    SECTION("numbers of no process") {
        expected = ErrorCode::kSystem;
        fixture.reply(request.sequence, GENERATE(0, 1, -EAGAIN, -EPERM));
    }
    SECTION("answers to what it was not asked, without end") {
        for (int i = 0; i < limits::kStrayWakeRepliesMax; ++i) {
            fixture.reply(request.sequence + 1, 10);
            CHECK_FALSE(woken.has_value());
        }
        fixture.reply(request.sequence - 1, 10);
    }
    SECTION("it ends") {
        expected = ErrorCode::kUnavailable;
        fixture.peer.reset();
        fixture.poll();
    }
    SECTION("it is closed") {
        expected = ErrorCode::kUnavailable;
        fixture.copy->close();
        fixture.poll();
    }
    REQUIRE(woken.has_value());
    REQUIRE(woken->has_error());
    CHECK(woken->error().code() == expected);
}

TEST_CASE("descriptors that a copy sends are thrown away", "[session][checkpoint]") {
    CopyFixture fixture;
    Woken woken;
    fixture.wake(woken);
    const WakeReply reply{fixture.take().sequence, 10};
    const int fd = ::dup(fixture.null.get());
    const int next = ::dup(fd);  // the lowest free number is known now
    REQUIRE(::close(next) == 0);
    const std::array<int, 1> sent{fixture.null.get()};
    REQUIRE(
        send_with_fds(fixture.peer.get(), std::as_bytes(std::span(&reply, 1)), sent).has_value());
    fixture.poll();
    REQUIRE(woken.has_value());
    CHECK(woken->has_value());
    const int after = ::dup(fd);
    CHECK(after == next);
    (void)::close(after);
    (void)::close(fd);
}

TEST_CASE("a copy that says nothing is given up, and can be asked again", "[session][checkpoint]") {
    CopyFixture fixture;
    Woken woken;
    fixture.wake(woken, false, 0ms);
    fixture.run_until(woken);
    REQUIRE(woken->has_error());
    CHECK(woken->error().code() == ErrorCode::kTimeout);
    const WakeRequest late = fixture.take();
    Woken again;
    fixture.wake(again);
    fixture.reply(late.sequence, 9);  // not this one's
    CHECK_FALSE(again.has_value());
    fixture.reply(fixture.take().sequence, 10);
    REQUIRE(again.has_value());
    CHECK(again->value() == 10);
}

TEST_CASE("a copy is counted on when it says that it sleeps", "[session][checkpoint]") {
    CopyFixture fixture;
    std::optional<Status> asleep;
    fixture.wait_asleep(asleep);
    CHECK_FALSE(asleep.has_value());
    fixture.reply(sandbox::kAsleepSequence, 10);
    REQUIRE(asleep.has_value());
    CHECK(asleep->has_value());
    Woken woken;
    fixture.wake(woken);
    fixture.reply(fixture.take().sequence, 11);
    REQUIRE(woken.has_value());
    CHECK(woken->value() == 11);
}

TEST_CASE("a copy that never comes to sleep is found out", "[session][checkpoint]") {
    CopyFixture fixture;
    std::optional<Status> asleep;
    ErrorCode expected = ErrorCode::kUnavailable;
    SECTION("it ends before") {
        fixture.wait_asleep(asleep);
        fixture.peer.reset();
        fixture.poll();
    }
    SECTION("it is closed before") {
        fixture.copy->close();
        fixture.wait_asleep(asleep);
    }
    SECTION("it names no process") {
        expected = ErrorCode::kSystem;
        fixture.wait_asleep(asleep);
        fixture.reply(sandbox::kAsleepSequence, GENERATE(0, 1, -EAGAIN));
    }
    SECTION("it says something else") {
        expected = ErrorCode::kProtocol;
        fixture.wait_asleep(asleep);
        fixture.say("abc", 3);
    }
    SECTION("it says nothing") {
        expected = ErrorCode::kTimeout;
        fixture.wait_asleep(asleep, 0ms);
        fixture.run_until(asleep);
    }
    SECTION("it is asked after a fork") {
        Woken woken;
        fixture.wake(woken);
        fixture.reply(fixture.take().sequence, 10);
        fixture.wait_asleep(asleep);
    }
    REQUIRE(asleep.has_value());
    REQUIRE(asleep->has_error());
    CHECK(asleep->error().code() == expected);
}

TEST_CASE("a closed copy is not asked", "[session][checkpoint]") {
    CopyFixture fixture;
    fixture.copy->close();
    Woken woken;
    fixture.wake(woken);
    REQUIRE(woken.has_value());
    REQUIRE(woken->has_error());
    CHECK(woken->error().code() == ErrorCode::kUnavailable);
}

TEST_CASE("a copy that passes to another program sleeps on there", "[session][passing]") {
    CopyFixture fixture;
    Woken first;
    fixture.wake(first);
    CHECK(fixture.copy->is_asked());
    fixture.reply(fixture.take().sequence, 10);
    REQUIRE(first.has_value());
    CHECK_FALSE(fixture.copy->is_asked());
    PassedSleeper passed = fixture.copy->pass_on();
    CHECK(passed.worker == 5);
    Woken refused;
    fixture.wake(refused);
    REQUIRE(refused.has_value());
    CHECK(refused->error().code() == ErrorCode::kUnavailable);
    auto made = SleepingCopy::go_on(fixture.io, std::move(passed));
    REQUIRE(made.has_value());
    fixture.copy = std::move(made.value());
    CHECK(fixture.copy->worker() == 5);
    Woken again;
    fixture.wake(again);
    const WakeRequest request = fixture.take();
    CHECK(request.sequence == 2);  // an answer to an earlier request is none to this one
    fixture.reply(1, 11);
    CHECK_FALSE(again.has_value());
    fixture.reply(request.sequence, 12);
    REQUIRE(again.has_value());
    CHECK(again->value() == 12);
    std::optional<Status> asleep;
    fixture.wait_asleep(asleep);
    REQUIRE(asleep.has_value());
    CHECK(asleep->has_error());  // it has said so before
}

}  // namespace
}  // namespace cellkeep::session
