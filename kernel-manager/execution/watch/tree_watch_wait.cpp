// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/watch/tree_watch_wait.hpp"

#include "protocol/support/await.hpp"

#include <fcntl.h>

#include <cerrno>
#include <utility>

namespace cellkeep::session {

namespace asio = boost::asio;

Result<std::shared_ptr<TreeWatchWait>> TreeWatchWait::create(
    const asio::any_io_executor& executor, const TreeWatch& watch) {
    UniqueFd own(::fcntl(watch.fd(), F_DUPFD_CLOEXEC, 0));
    if (!own) {
        return Error::from_errno(errno, "watch: fcntl(F_DUPFD_CLOEXEC)");
    }
    const std::shared_ptr<TreeWatchWait> made(new TreeWatchWait(executor));
    boost::system::error_code error;
    made->descriptor_.assign(own.get(), error);
    if (error) {
        return Error(ErrorCode::kSystem, "watch: " + error.message());
    }
    (void)own.release();  // the descriptor's now
    return made;
}

asio::awaitable<bool> TreeWatchWait::wait(std::chrono::milliseconds time) {
    const auto self = shared_from_this();
    if (!std::exchange(armed_, true)) {
        descriptor_.async_wait(
            asio::posix::stream_descriptor::wait_read,
            [self](const boost::system::error_code& error) {
                self->armed_ = false;
                if (!error) {
                    self->timer_.cancel();
                }
            });
    }
    timer_.expires_after(time);
    const auto [woken] = co_await timer_.async_wait(kAwait);
    co_return !woken;
}

void TreeWatchWait::close() {
    boost::system::error_code ignored;  // It was only ever waited for.
    descriptor_.close(ignored);
}

}  // namespace cellkeep::session
