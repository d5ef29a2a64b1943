// SPDX-License-Identifier: Apache-2.0
//
// WorkerStarts over a sandbox whose pid 1 is a test, and processes that can be its workers.
#pragma once

#include "kernel-manager/kernel/process/worker_starts.hpp"
#include "protocol/support/syscall.hpp"

#include <catch2/catch.hpp>

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::session::test {

/// A child that waits for a signal. Killed and reaped at the end.
class WaitingChild {
 public:
    WaitingChild() {
        // Before the fork: a signal could reach the child before its first instruction, and the
        // test framework's handler in it allocates, which may wait for a lock for ever.
        const auto handler = ::signal(SIGINT, SIG_DFL);
        pid_ = ::fork();
        while (pid_ == 0) {
            (void)::pause();  // Ignored: it returns after a signal, and waits for the next.
        }
        (void)::signal(SIGINT, handler);
        REQUIRE(pid_ > 0);
    }
    WaitingChild(const WaitingChild&) = delete;
    WaitingChild& operator=(const WaitingChild&) = delete;
    ~WaitingChild() {
        if (pid_ > 0) {
            (void)::kill(pid_, SIGKILL);
            (void)::waitpid(pid_, nullptr, 0);
        }
    }

    UniqueFd open() const { return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0))); }
    bool lives() const { return ::waitpid(pid_, nullptr, WNOHANG) == 0; }
    /// Waits for its end and returns the signal that it ended by; 0 if by none.
    int wait_for_signal() {
        int status = 0;
        REQUIRE(::waitpid(std::exchange(pid_, -1), &status, 0) > 0);
        return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    }

 private:
    pid_t pid_ = -1;
};

/// A sandbox that takes one start at a time and answers when the test says so.
struct FakeInitSandbox {
    FakeInitSandbox() {
        auto pair = make_socket_pair(SOCK_SEQPACKET);
        REQUIRE(pair.has_value());
        near = std::move(pair.value().first);
        far = std::move(pair.value().second);
    }

    std::vector<sandbox::WorkerSpec> taken;  // every start that was sent, in order
    std::optional<Error> refuses;            // begin_start() says so
    bool under_way = false;
    int given_up = 0;
    int looks = 0;       // how often was asked whether it is frozen
    int frozen_for = 0;  // looks
    bool only_adopts = false;

    void answer(Result<sandbox::Worker> result) {
        answer_.emplace(std::move(result));
        REQUIRE(::write(far.get(), "!", 1) == 1);
    }
    void answer_with(const WaitingChild& child) {
        answer(sandbox::Worker{static_cast<sandbox::WorkerId>(taken.size()), child.open()});
    }

    WorkerStarts::Sandbox hooks() {
        return {
            .begin_start = [this](sandbox::WorkerSpec spec) -> Result<sandbox::WorkerId> {
                if (refuses.has_value()) {
                    return *refuses;
                }
                if (given_up > 0) {
                    return Error(ErrorCode::kUnavailable, "the sandbox is dead");
                }
                REQUIRE_FALSE(std::exchange(under_way, true));
                taken.push_back(std::move(spec));
                return static_cast<sandbox::WorkerId>(taken.size());
            },
            .answer_fd = [this] { return near.get(); },
            .take_start = [this]() -> Result<std::optional<sandbox::Worker>> {
                char byte = 0;
                (void)!::read(near.get(), &byte, 1);  // Ignored: it only announces the answer.
                if (!answer_.has_value()) {
                    return std::optional<sandbox::Worker>();
                }
                under_way = false;
                Result<sandbox::Worker> result = std::move(*answer_);
                answer_.reset();
                BOOST_OUTCOME_TRY(auto worker, std::move(result));
                return std::optional(std::move(worker));
            },
            .give_up =
                [this] {
                    ++given_up;
                    under_way = false;
                },
            .is_frozen = [this] { return looks++ < frozen_for; },
            .only_adopts = [this] { return only_adopts; }};
    }

 private:
    UniqueFd near;
    UniqueFd far;
    std::optional<Result<sandbox::Worker>> answer_;
};

struct StartsFixture {
    explicit StartsFixture(std::chrono::milliseconds patience = std::chrono::hours(1)) {
        starts.emplace(io, sandbox.hooks(), patience, [this] { return owner; });
    }

    boost::asio::io_context io;
    std::shared_ptr<int> owner = std::make_shared<int>(0);
    FakeInitSandbox sandbox;
    std::vector<std::string> ends;  // "a: worker 1" or "a: error code", in order
    std::vector<sandbox::Worker> workers;
    std::optional<WorkerStarts> starts;

    static sandbox::WorkerSpec spec(const std::string& name) {
        sandbox::WorkerSpec made;
        made.argv = {name};
        return made;
    }
    WorkerStart::Done note(const std::string& name) {
        return [this, name](Result<sandbox::Worker> result) {
            if (result.has_error()) {
                ends.push_back(name + ": " + std::string(to_string(result.error().code())));
            } else {
                ends.push_back(name + ": worker " + std::to_string(result.value().id));
                workers.push_back(std::move(result).value());
            }
        };
    }
    std::shared_ptr<WorkerStart> begin(const std::string& name) {
        auto begun = starts->begin(spec(name), note(name));
        REQUIRE(begun.has_value());
        return std::move(begun).value();
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

}  // namespace cellkeep::session::test
