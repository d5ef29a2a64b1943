// SPDX-License-Identifier: Apache-2.0
#include "sandbox/server/branch_launcher.hpp"

#include "protocol/support/syscall.hpp"
#include "sandbox/cgroup/leftovers.hpp"
#include "sandbox/server/launch.hpp"
#include "sandbox/server/launcher_process.hpp"
#include "sandbox/shared/messages.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <utility>

namespace cellkeep::sandbox {

namespace {

constexpr std::chrono::milliseconds kEndPatience(2000);
/// A bound is one write.
constexpr std::chrono::milliseconds kRoomPatience(5000);
bool has_ended(const UniqueFd& pidfd) {
    pollfd watched{pidfd.get(), POLLIN, 0};
    return ::poll(&watched, 1, 0) != 0;
}

}  // namespace

Status BranchLauncher::with_room(const std::string& program, const std::function<Status()>& work) {
    static std::mutex one_at_a_time;
    const std::lock_guard lock(one_at_a_time);
    if (process_ && has_ended(process_)) {
        end();
    }
    Status done = process_ ? Status(ok()) : start(program);
    if (done.has_value()) {
        done = order_room(RoomOrder::kOpen);
    }
    if (done.has_value()) {
        done = work();
        const Status closed = order_room(RoomOrder::kClose);
        done = done.has_error() ? done : closed;
    }
    if (done.has_error()) {
        end();
    }
    return done;
}

Status BranchLauncher::start(const std::string& program) {
    BOOST_OUTCOME_TRY(const auto path, find_launcher(program));
    BOOST_OUTCOME_TRY(auto control, make_socket_pair(SOCK_SEQPACKET));
    // One that does not read must not hold the server up.
    BOOST_OUTCOME_TRY(set_nonblocking(control.first.get()));
    const std::array fds{
        control.second.get(), place_.mount.get(), place_.pid.get(), place_.user.get()};
    BOOST_OUTCOME_TRY(const auto pid, spawn_launcher(path, kMakeBranches, fds));
    control.second.reset();
    BOOST_OUTCOME_TRY(process_, open_launcher(pid));
    control_ = std::move(control.first);
    return await_parent();
}

/// Until it has entered the parent, or has said why it cannot.
Status BranchLauncher::await_parent() {
    const auto deadline = std::chrono::steady_clock::now() + kLaunchPatience;
    while (true) {
        BOOST_OUTCOME_TRY(wait_until_readable(control_.get(), deadline));
        SetupMessage message;
        BOOST_OUTCOME_TRY(
            auto received,
            receive_with_fds(control_.get(), std::as_writable_bytes(std::span(&message, 1))));
        if (received.bytes != sizeof(message)) {
            return Error(ErrorCode::kSystem, "the launcher of branches has ended");
        }
        if (message.kind == SetupMessageKind::kRoom && received.fds.size() == 1) {
            room_ = std::move(received.fds[0]);
            continue;
        }
        return message.kind == SetupMessageKind::kReady
                   ? Status(ok())
                   : Error::from_errno(message.error, step_name(message.step));
    }
}

Status BranchLauncher::order_room(RoomOrder order) {
    BOOST_OUTCOME_TRY(
        send_with_fds(room_.get(), std::as_bytes(std::span(&order, 1)), std::span<const int>()));
    const auto deadline = std::chrono::steady_clock::now() + kRoomPatience;
    BOOST_OUTCOME_TRY(wait_until_readable(room_.get(), deadline));
    std::int32_t error = EIO;
    BOOST_OUTCOME_TRY(
        const auto received,
        receive_with_fds(room_.get(), std::as_writable_bytes(std::span(&error, 1))));
    if (received.bytes != sizeof(error)) {
        error = EPIPE;
    }
    return error == 0 ? Status(ok()) : Error::from_errno(error, step_name(SetupStep::kOpenRoom));
}

Status BranchLauncher::request(std::span<const int> fds) const {
    LaunchRequest request;
    request.cgroup_files = static_cast<std::uint32_t>(fds.size() - kLaunchFdsMin);
    const Status sent = send_with_fds(control_.get(), std::as_bytes(std::span(&request, 1)), fds);
    return sent.has_error() ? Status(Error(
                                  ErrorCode::kUnavailable,
                                  "the launcher of branches: " + sent.error().message()))
                            : ok();
}

void BranchLauncher::end() {
    // It ends by itself, when what was open is put back.
    control_.reset();
    room_.reset();
    if (process_) {
        const auto deadline = std::chrono::steady_clock::now() + kEndPatience;
        (void)wait_until_readable(process_.get(), deadline).has_value();  // Ignored: it is killed.
    }
    if (kill_and_reap(process_, kEndPatience).has_error()) {
        leave_behind({std::move(process_), {}});
    }
    process_.reset();
}

}  // namespace cellkeep::sandbox
