// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/checkpoints/ready_fork_keeper.hpp"

#include "protocol/limits.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

namespace cellkeep::session {

bool has_room_for_ready_fork(const Result<sandbox::Usage>& known, const SessionLimits& limits) {
    if (known.has_error()) {
        return false;
    }
    const sandbox::Usage& usage = known.value();
    constexpr std::uint64_t kMappedPerTableByte = 512;
    const std::uint64_t limit = limits.memory_mb << 20U;
    const std::uint64_t needed =
        usage.memory_bytes + usage.memory_bytes / kMappedPerTableByte + kRoomBesideReadyFork;
    return needed <= limit && usage.processes + kProcessesBesideReadyFork < limits.processes;
}

void ReadyForkKeeper::begin(const std::string& checkpoint) {
    const auto copy = hooks_.copy_of(checkpoint);
    if (closed_ || work_ || !copy || !copy->prepares() || copy->is_ready()) {
        return;
    }
    work_ = std::make_shared<Completion<bool>>(io_);
    boost::asio::co_spawn(io_, prepare(checkpoint), boost::asio::detached);
}

boost::asio::awaitable<void> ReadyForkKeeper::prepare(std::string checkpoint) {
    const auto session = keep_session_();
    co_await hooks_.wait_moved();
    if (ready_ && *ready_ != checkpoint && !hooks_.is_paused()) {
        std::string former = *ready_;
        co_await let_go_of(std::move(former));
    }
    const auto copy = hooks_.copy_of(checkpoint);
    const bool replaces = ready_ && *ready_ != checkpoint;
    if (!closed_ && copy && !replaces && !hooks_.is_paused() && hooks_.has_room()) {
        ready_ = std::move(checkpoint);
        hooks_.wake();
        // Ignored: then none is ready, and the next to go back waits for its fork.
        (void)co_await copy->prepare(limits::kCopyPatience);
    }
    std::exchange(work_, nullptr)->set(true);
    hooks_.settled();
}

boost::asio::awaitable<void> ReadyForkKeeper::let_go_of(std::string checkpoint) {
    ready_.reset();
    const auto copy = hooks_.copy_of(checkpoint);
    if (!closed_ && copy && copy->is_ready()) {
        hooks_.wake();
        (void)co_await copy->let_go(limits::kCopyPatience);  // Ignored: it is a process too many.
    }
}

boost::asio::awaitable<void> ReadyForkKeeper::wait() {
    while (auto work = work_) {
        (void)co_await Completion<bool>::wait(std::move(work));
    }
}

boost::asio::awaitable<std::optional<std::string>> ReadyForkKeeper::let_go(std::string but) {
    const auto session = keep_session_();
    co_await wait();
    if (!ready_ || *ready_ == but) {
        co_return std::nullopt;
    }
    auto former = ready_;
    work_ = std::make_shared<Completion<bool>>(io_);
    std::string checkpoint = *former;
    co_await let_go_of(std::move(checkpoint));
    std::exchange(work_, nullptr)->set(true);
    co_return former;
}

}  // namespace cellkeep::session
