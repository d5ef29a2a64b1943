// SPDX-License-Identifier: Apache-2.0
#include "protocol/internal_request.hpp"
#include "tests/unit/session/kernel_fixture.hpp"

#include <csignal>

namespace cellkeep::session {
namespace {

using protocol::Channel;
using protocol::Message;
using test::answer;
using test::KernelFixture;
using test::Names;

TEST_CASE("a kernel is copied between cells only", "[session][kernel]") {
    using Asked = std::optional<CopyRequest::Answer>;
    KernelFixture fixture;
    const auto ask = [&](Asked& asked) {
        boost::asio::co_spawn(
            fixture.io,
            [](KernelFixture& one, Asked& to) -> boost::asio::awaitable<void> {
                UniqueFd none;
                to.emplace(
                    co_await one.kernel.copy(std::move(none), checkpoint::OnThreads::kRefuse));
            }(fixture, asked),
            boost::asio::detached);
        fixture.poll();
    };
    Asked early;
    ask(early);
    REQUIRE(early.has_value());
    CHECK(early->error().code() == ErrorCode::kConflict);
    fixture.launch_ready();
    const Message running = fixture.submit();
    Asked busy;
    ask(busy);
    REQUIRE(busy.has_value());
    CHECK(busy->error().code() == ErrorCode::kConflict);
    fixture.complete(running);
    Asked asked;
    ask(asked);
    CHECK_FALSE(asked.has_value());
    CHECK(fixture.kernel.is_at_work());
    const Message request = fixture.process().sent.back();
    CHECK(request.header().msg_type == protocol::kCheckpointRequest);
    // What comes meanwhile waits for the answer.
    (void)fixture.submit();
    Asked second;
    ask(second);
    CHECK(second->error().code() == ErrorCode::kConflict);
    const std::size_t before = fixture.process().sent.size();
    SECTION("which comes") {
        fixture.process().say(answer(
            request,
            Channel::kControl,
            "x",
            {{"status", "error"}, {"ename", "NotForkable"}, {"evalue", "debugger"}, {"count", 0}}));
        fixture.poll();
        REQUIRE(asked.has_value());
        CHECK(std::holds_alternative<checkpoint::NotForkable>(asked->value()));
        CHECK(fixture.process().sent.size() == before + 1);
        CHECK(fixture.process().sent.back().header().msg_type == "execute_request");
    }
    SECTION("which does not, because it dies") {
        fixture.crash();
        fixture.poll();
        REQUIRE(asked.has_value());
        CHECK(asked->error().code() == ErrorCode::kUnavailable);
    }
}

TEST_CASE("a kernel goes on in another process", "[session][kernel]") {
    KernelFixture fixture;
    fixture.launch_ready();
    REQUIRE(fixture.orders.size() == 1);
    std::optional<Status> done;
    fixture.wait(fixture.kernel.go_back({77, {}}, "Back."), done);
    CHECK(fixture.process().signals == std::vector<int>{SIGKILL});
    fixture.crash();
    CHECK(fixture.taken_over == std::vector<pid_t>{77});
    CHECK(fixture.orders.size() == 1);
    CHECK_FALSE(done.has_value());
    fixture.process().answer_info({{"status", "ok"}}, "woken");
    fixture.poll();
    REQUIRE(done.has_value());
    CHECK(done->has_value());
    CHECK(fixture.kernel.restarts() == 1);
    CHECK(fixture.seen.take() == Names{"starting", "idle"});
    // Its death is followed by a fresh one.
    fixture.crash();
    CHECK(fixture.orders.size() == 2);
    CHECK(fixture.taken_over.size() == 1);
}

TEST_CASE(
    "a kernel goes on in another process before the one that it leaves is gone",
    "[session][kernel]") {
    KernelFixture fixture;
    fixture.launch_ready();
    fixture.halts = true;
    std::optional<Status> done;
    fixture.wait(fixture.kernel.go_back({77, {}}, "Back."), done);
    CHECK(fixture.process().signals.empty());
    CHECK(fixture.taken_over.empty());
    const auto exit = fixture.starts.exit(0);
    fixture.postpones_requests = true;  // until it is gone
    fixture.halted(true);
    CHECK(fixture.taken_over == std::vector<pid_t>{77});
    fixture.process().answer_info({{"status", "ok"}}, "woken");
    fixture.poll();
    REQUIRE(done.has_value());
    CHECK(done->has_value());
    CHECK(fixture.kernel.restarts() == 1);
    CHECK(fixture.kernel.state() == KernelState::kIdle);
    CHECK(fixture.seen.take() == Names{"starting", "idle"});
    const std::size_t before = fixture.process().sent.size();
    const Message request = fixture.submit();
    fixture.kernel.on_worker_exit(exit);
    fixture.kernel.on_swept();
    CHECK(fixture.process().sent.size() == before);
    CHECK(fixture.kernel.state() == KernelState::kIdle);
    fixture.postpones_requests = false;
    fixture.kernel.dispatch();
    CHECK(fixture.process().sent.size() == before + 1);
    fixture.complete(request);
    CHECK(fixture.orders.size() == 1);
}

TEST_CASE(
    "threads that go on in another process do not meet the one before it", "[session][kernel]") {
    KernelFixture fixture;
    fixture.launch_ready();
    fixture.halts = true;
    std::optional<Status> done;
    WokenProcess woken{77, {}};
    woken.runs_by_itself = true;
    fixture.wait(fixture.kernel.go_back(std::move(woken), "Back."), done);
    CHECK_FALSE(static_cast<bool>(fixture.halted));
    CHECK(fixture.process().signals == std::vector<int>{SIGKILL});
    CHECK(fixture.taken_over.empty());
    fixture.crash();
    CHECK(fixture.taken_over == std::vector<pid_t>{77});
}

TEST_CASE("after a death a kernel goes on from a checkpoint", "[session][kernel]") {
    KernelFixture fixture;
    fixture.launch_ready();
    fixture.revival = RestoredState{"ckp_1", {"exe_1"}};
    (void)fixture.submit();
    fixture.crash();
    CHECK(fixture.revived == std::vector<std::string>{"ckp_1"});
    CHECK(fixture.orders.size() == 1);  // nothing starts before the session says what
    SECTION("if it can") {
        fixture.kernel.on_revived(WokenProcess{77, {}});
        CHECK(fixture.taken_over == std::vector<pid_t>{77});
        CHECK(fixture.orders.size() == 1);
        fixture.process().answer_info({{"status", "ok"}}, "woken");
        fixture.poll();
        CHECK(fixture.kernel.state() == KernelState::kIdle);
        CHECK(fixture.kernel.restarts() == 1);
    }
    SECTION("and afresh if it cannot") {
        fixture.kernel.on_revived(Error(ErrorCode::kNotFound, "gone"));
        CHECK(fixture.taken_over.empty());
        CHECK(fixture.orders.size() == 2);
    }
    SECTION("and afresh if a client asks for a restart meanwhile") {
        std::optional<Status> done;
        fixture.wait(fixture.kernel.restart(), done);
        fixture.kernel.on_revived(WokenProcess{77, {}});
        CHECK(fixture.taken_over.empty());
        CHECK(fixture.orders.size() == 2);
    }
}

TEST_CASE("a restart that a client asks for goes on from nothing", "[session][kernel]") {
    KernelFixture fixture;
    fixture.launch_ready();
    fixture.revival = RestoredState{"ckp_1", {}};
    std::optional<Status> done;
    fixture.wait(fixture.kernel.restart(), done);
    fixture.crash();
    CHECK(fixture.revived.empty());
    CHECK(fixture.orders.size() == 2);
}

}  // namespace
}  // namespace cellkeep::session
