// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/kernel/parent_watch.hpp"

#include "protocol/support/unique_fd.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>

namespace cellkeep::cli {

Result<std::unique_ptr<ParentWatch>> ParentWatch::create(
    boost::asio::io_context& io, pid_t parent, std::function<void()> on_gone) {
    UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, parent, 0)));
    if (!pidfd) {
        const int reason = errno;
        if (reason == ESRCH) {
            return Error(ErrorCode::kNotFound, "process " + std::to_string(parent) + " is gone");
        }
        return Error::from_errno(reason, "pidfd_open(" + std::to_string(parent) + ")");
    }
    std::unique_ptr<ParentWatch> watch(new ParentWatch(io));
    boost::system::error_code error;
    watch->pidfd_.assign(pidfd.get(), error);
    if (error) {
        return Error(ErrorCode::kSystem, "watch the parent process: " + error.message());
    }
    (void)pidfd.release();
    watch->pidfd_.async_wait(
        boost::asio::posix::stream_descriptor::wait_read,
        [on_gone = std::move(on_gone)](const boost::system::error_code& failure) {
            if (!failure) {
                on_gone();
            }
        });
    return watch;
}

Result<std::optional<pid_t>> parse_parent_pid(const char* value) {
    const std::string_view text = value == nullptr ? "" : value;
    if (text.empty() || text == "0") {
        return std::optional<pid_t>();
    }
    pid_t pid = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
    if (error != std::errc() || stop != text.data() + text.size() || pid <= 0) {
        return Error(
            ErrorCode::kInvalidArgument,
            "JPY_PARENT_PID is \"" + std::string(text) + "\", which is no process id");
    }
    return std::optional<pid_t>(pid);
}

}  // namespace cellkeep::cli
