// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/checkpoints/ready_fork_keeper.hpp"

#include "protocol/support/syscall.hpp"
#include "sandbox/shared/sleep_messages.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <catch2/catch.hpp>

#include <sys/socket.h>

#include <cerrno>
#include <map>
#include <span>

namespace cellkeep::session {
namespace {

using sandbox::WakeKind;
using sandbox::WakeReply;
using sandbox::WakeRequest;

/// The test is the copies of the checkpoints "a" and "b", and the session.
struct KeeperFixture {
    KeeperFixture() {
        add("a", true);
        add("b", true);
        add("old", false);
    }
    void add(const std::string& id, bool prepares) {
        auto pair = make_socket_pair(SOCK_SEQPACKET);
        REQUIRE(pair.has_value());
        REQUIRE(set_nonblocking(pair.value().first.get()).has_value());
        REQUIRE(set_nonblocking(pair.value().second.get()).has_value());
        auto made =
            SleepingCopy::create(io, std::move(pair.value().first), {5, UniqueFd()}, prepares);
        REQUIRE(made.has_value());
        copies[id] = made.value();
        peers[id] = std::move(pair.value().second);
    }
    std::shared_ptr<SleepingCopy> copy_of(const std::string& id) {
        const auto found = copies.find(id);
        return found == copies.end() ? nullptr : found->second;
    }
    static boost::asio::awaitable<void> nothing() { co_return; }
    void poll() {
        io.restart();
        (void)io.poll();
    }
    /// What a copy was asked for; nullopt: nothing.
    std::optional<WakeRequest> take(const std::string& id) {
        WakeRequest request;
        const ssize_t got = ::recv(peers.at(id).get(), &request, sizeof(request), 0);
        return got == sizeof(request) ? std::optional(request) : std::nullopt;
    }
    /// Answers it. Returns whether it was asked for that.
    bool answer(const std::string& id, WakeKind kind, std::int32_t forked) {
        const auto request = take(id);
        if (!request || request->kind != kind) {
            return false;
        }
        const WakeReply reply{request->sequence, forked};
        REQUIRE(::send(peers.at(id).get(), &reply, sizeof(reply), 0) == sizeof(reply));
        poll();
        return true;
    }
    void begin(const std::string& id) {
        keeper.begin(id);
        poll();
    }
    void let_go(std::optional<std::string>& which, std::string but = {}) {
        boost::asio::co_spawn(io, note(which, std::move(but)), boost::asio::detached);
        poll();
    }
    boost::asio::awaitable<void> note(std::optional<std::string>& which, std::string but) {
        const auto gone = co_await keeper.let_go(std::move(but));
        which = gone.value_or("none");
    }

    boost::asio::io_context io;
    std::map<std::string, std::shared_ptr<SleepingCopy>> copies;
    std::map<std::string, UniqueFd> peers;
    bool paused = false;
    bool room = true;
    int settled = 0;
    ReadyForkKeeper keeper{
        io,
        {.copy_of = [this](const std::string& id) { return copy_of(id); },
         .wait_moved = [] { return nothing(); },
         .is_paused = [this] { return paused; },
         .has_room = [this] { return room; },
         .wake = [] {},
         .settled = [this] { ++settled; }},
        [this]() -> std::shared_ptr<const void> {
            return {&io, [](const void*) {}};
        }};
};

TEST_CASE("one copy of a session has a fork ready", "[session][checkpoint]") {
    KeeperFixture fixture;
    fixture.begin("a");
    CHECK_FALSE(fixture.keeper.is_at_rest());
    CHECK(fixture.answer("a", WakeKind::kPrepare, 10));
    CHECK(fixture.keeper.is_at_rest());
    CHECK(fixture.settled == 1);
    CHECK(fixture.copies["a"]->is_ready());
    SECTION("and no second one") {
        fixture.begin("a");
        CHECK_FALSE(fixture.take("a").has_value());
    }
    SECTION("which another's takes the place of") {
        fixture.begin("b");
        CHECK_FALSE(fixture.take("b").has_value());
        CHECK(fixture.answer("a", WakeKind::kLetGo, 5));
        CHECK(fixture.answer("b", WakeKind::kPrepare, 11));
        CHECK_FALSE(fixture.copies["a"]->is_ready());
        CHECK(fixture.copies["b"]->is_ready());
    }
    SECTION("which goes with its checkpoint") {
        fixture.copies.erase("a");
        fixture.begin("b");
        CHECK(fixture.answer("b", WakeKind::kPrepare, 11));
    }
    SECTION("which stays while the session is paused") {
        fixture.paused = true;
        fixture.begin("b");
        CHECK_FALSE(fixture.take("a").has_value());
        CHECK_FALSE(fixture.take("b").has_value());
        CHECK(fixture.keeper.is_at_rest());
    }
    SECTION("which can be let go") {
        std::optional<std::string> which;
        fixture.let_go(which, "a");
        CHECK(which == "none");  // it is the one that is wanted
        which.reset();
        fixture.let_go(which);
        CHECK_FALSE(which.has_value());
        CHECK(fixture.answer("a", WakeKind::kLetGo, 5));
        CHECK(which == "a");
        CHECK(fixture.keeper.is_at_rest());
        fixture.let_go(which);
        CHECK(which == "none");
    }
}

TEST_CASE("a fork that another program had made is let go, too", "[session][checkpoint]") {
    KeeperFixture fixture;
    PassedSleeper passed = fixture.copies["a"]->pass_on();
    passed.ready = true;
    auto copy = SleepingCopy::go_on(fixture.io, std::move(passed));
    REQUIRE(copy.has_value());
    fixture.copies["a"] = copy.value();
    fixture.keeper.go_on("a");
    std::optional<std::string> which;
    fixture.let_go(which, "b");
    CHECK(fixture.answer("a", WakeKind::kLetGo, 5));
    CHECK(which == "a");
}

TEST_CASE("who needs the copy waits until its fork is there", "[session][checkpoint]") {
    KeeperFixture fixture;
    fixture.begin("a");
    std::optional<std::string> which;
    fixture.let_go(which);
    fixture.begin("b");  // not while another is made
    CHECK(fixture.answer("a", WakeKind::kPrepare, 10));
    CHECK_FALSE(fixture.take("b").has_value());
    CHECK_FALSE(which.has_value());
    CHECK(fixture.answer("a", WakeKind::kLetGo, 5));
    CHECK(which == "a");
}

TEST_CASE("no fork is made ready", "[session][checkpoint]") {
    KeeperFixture fixture;
    SECTION("of a checkpoint that is gone") {
        fixture.begin("c");
    }
    SECTION("by a copy that does not know how") {
        fixture.begin("old");
        CHECK_FALSE(fixture.take("old").has_value());
    }
    SECTION("without room for it") {
        fixture.room = false;
        fixture.begin("a");
        CHECK_FALSE(fixture.take("a").has_value());
    }
    SECTION("of a session that is paused") {
        fixture.paused = true;
        fixture.begin("a");
        CHECK_FALSE(fixture.take("a").has_value());
    }
    SECTION("after the end of the session") {
        fixture.keeper.close();
        fixture.begin("a");
        CHECK_FALSE(fixture.take("a").has_value());
    }
    SECTION("by a copy that cannot fork") {
        fixture.begin("a");
        CHECK(fixture.answer("a", WakeKind::kPrepare, -EAGAIN));
        CHECK_FALSE(fixture.copies["a"]->is_ready());
        fixture.begin("a");  // but it is tried again
        CHECK(fixture.answer("a", WakeKind::kPrepare, 10));
    }
    CHECK(fixture.keeper.is_at_rest());
}

TEST_CASE("a ready fork leaves room for what code may do", "[session][checkpoint]") {
    SessionLimits limits;
    limits.memory_mb = 512;
    limits.processes = 64;
    sandbox::Usage usage;
    usage.processes = 64 - kProcessesBesideReadyFork - 1;
    usage.memory_bytes = 480ULL << 20U;
    CHECK(has_room_for_ready_fork(usage, limits));
    SECTION("memory") {
        usage.memory_bytes = (512ULL << 20U) - kRoomBesideReadyFork;  // and its page tables
        CHECK_FALSE(has_room_for_ready_fork(usage, limits));
    }
    SECTION("nobody knows") {
        CHECK_FALSE(has_room_for_ready_fork(Error(ErrorCode::kConflict, "it ends"), limits));
    }
    SECTION("processes") {
        ++usage.processes;
        CHECK_FALSE(has_room_for_ready_fork(usage, limits));
    }
}

}  // namespace
}  // namespace cellkeep::session
