// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/checkpoints/sleeper_moves.hpp"

#include "protocol/support/run_elsewhere.hpp"
#include "sandbox/server/branch_place.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace cellkeep::session {

namespace {

bool has_ended(const UniqueFd& pidfd) {
    pollfd watched{pidfd.get(), POLLIN, 0};
    return ::poll(&watched, 1, 0) != 0;
}

/// What no sweep of its own group reaches, and what each of another group takes, must not stay.
void move_or_kill(const UniqueFd& pidfd, const std::string& file) {
    if (sandbox::move_to_cgroups(pidfd, {file}).has_error()) {
        // Ignored: ESRCH means that it has ended, which the move fails for, too.
        (void)::syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0);
    }
}

}  // namespace

SleeperMoves::SleeperMoves(
    boost::asio::io_context& io,
    sandbox::Sandbox& sandbox,
    std::shared_ptr<WorkThread> thread,
    std::function<boost::asio::awaitable<void>()> wait_empty,
    KeepAlive keep_session)
    : io_(io),
      sandbox_(sandbox),
      thread_(std::move(thread)),
      wait_empty_(std::move(wait_empty)),
      keep_session_(std::move(keep_session)) {}

void SleeperMoves::add(const UniqueFd& pidfd) {
    std::erase_if(sleepers_, [](const auto& one) { return has_ended(*one); });
    UniqueFd own(::fcntl(pidfd.get(), F_DUPFD_CLOEXEC, 0));
    if (!own) {
        // It can never be moved, and so it may not stay. Its end is reported like any worker's.
        (void)::syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0);
        return;
    }
    sleepers_.push_back(std::make_shared<const UniqueFd>(std::move(own)));
    added_ = true;
}

void SleeperMoves::begin() {
    if (moving_ || !sandbox_.has_stray_sleepers()) {
        return;
    }
    moving_ = std::make_shared<Completion<bool>>(io_);
    boost::asio::co_spawn(io_, move_all(), boost::asio::detached);
}

boost::asio::awaitable<void> SleeperMoves::move_all() {
    const auto session = keep_session_();
    // The end of an interpreter that was there is seen by its cgroup.
    co_await wait_empty_();
    // A copy that stays behind would be killed with the interpreter, and what goes on from it, too.
    do {
        added_ = false;
        std::function<std::optional<bool>()> work =
            [sleepers = sleepers_, file = sandbox_.sleepers_file()]() -> std::optional<bool> {
            for (const auto& one : sleepers) {
                move_or_kill(*one, file);
            }
            return true;
        };
        (void)co_await run_elsewhere<bool>(io_, *thread_, std::move(work));
    } while (added_);
    // Ignored: the end of the interpreter that is waited for does not come, and it is asked again.
    (void)sandbox_.sleepers_moved().has_value();
    std::exchange(moving_, nullptr)->set(true);
}

boost::asio::awaitable<void> SleeperMoves::wait() {
    const auto session = keep_session_();
    while (auto moving = moving_) {
        (void)co_await Completion<bool>::wait(std::move(moving));
    }
}

}  // namespace cellkeep::session
