// SPDX-License-Identifier: Apache-2.0
#include "sandbox/server/sandbox_state.hpp"

#include "protocol/support/syscall.hpp"
#include "sandbox/cgroup/leftovers.hpp"

#include <poll.h>

#include <cerrno>
#include <cstring>

namespace cellkeep::sandbox {

Status Sandbox::State::send(
    RequestHeader& header, const std::string& text, std::span<const int> fds) {
    header.sequence = ++last_sequence;
    header.text_bytes = static_cast<std::uint32_t>(text.size());
    std::string request(sizeof(header), '\0');
    std::memcpy(request.data(), &header, sizeof(header));
    request += text;
    const auto sent = send_with_fds(
        pid1.control.get(), std::as_bytes(std::span(request.data(), request.size())), fds);
    if (sent.has_error()) {
        // The socket does not block (launch.cpp).
        return sent.error().errno_value() == EAGAIN
                   ? Error(ErrorCode::kUnavailable, "the sandbox's pid 1 does not take requests")
                   : sent.error();
    }
    return ok();
}

Result<std::pair<ReplyMessage, std::vector<UniqueFd>>> Sandbox::State::ask(
    RequestHeader header,
    const std::string& text,
    std::span<const int> fds,
    std::chrono::milliseconds patience) {
    BOOST_OUTCOME_TRY(send(header, text, fds));
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (true) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            deadline - std::chrono::steady_clock::now());
        pollfd watched{pid1.control.get(), POLLIN, 0};
        const int ready =
            left.count() <= 0 ? 0 : ::poll(&watched, 1, static_cast<int>(left.count()));
        if (ready == 0) {
            return Error(ErrorCode::kTimeout, "the sandbox's pid 1 did not answer in time");
        }
        if (ready < 0) {
            if (errno == EINTR) {
                continue;
            }
            return Error::from_errno(errno, "poll(sandbox control)");
        }
        ReplyMessage reply;
        BOOST_OUTCOME_TRY(
            auto received,
            receive_with_fds(pid1.control.get(), std::as_writable_bytes(std::span(&reply, 1))));
        if (received.bytes != sizeof(reply)) {
            return Error(ErrorCode::kUnavailable, "the sandbox is dead");
        }
        if (reply.sequence == header.sequence) {
            return std::pair(reply, std::move(received.fds));
        }
    }
}

Status Sandbox::State::prepare_kill() {
    if (ending) {
        return Error(ErrorCode::kConflict, "kill_workers: the sandbox is destroyed");
    }
    if (frozen) {
        BOOST_OUTCOME_TRY(cgroup.thaw());
        frozen = false;
    }
    return ok();
}

Status Sandbox::State::kill_workers() {
    BOOST_OUTCOME_TRY(prepare_kill());
    // A task dies when it next runs, and so does pid 1's work, which has the session's quota.
    // Ignored: then it takes longer, and patience is the judge.
    (void)cgroup.lift_cpu_limit().has_value();
    // Two means: the kernel's, which needs nothing of pid 1's and catches every fork, and pid 1's
    // own, which also reaps.
    // Ignored: then pid 1 does it alone.
    (void)cgroup.kill_workers().has_value();
    return ok();
}

Status Sandbox::State::kill() {
    ending = true;
    Status result = ok();
    if (frozen) {
        // A frozen v1 task does not die until it is thawed (freezer-subsystem.rst).
        result = cgroup.thaw();
        frozen = result.has_error();
    }
    // A task dies when it next runs, and one over its quota may have to wait long for that.
    // Ignored: then it takes longer, and reaping tells.
    (void)cgroup.lift_cpu_limit().has_value();
    // cgroup.kill besides the namespace's own death: two means, and quicker for many processes.
    Status killed = cgroup.kill();
    return result.has_error() ? result : killed;
}

Status Sandbox::State::destroy(std::chrono::milliseconds patience) {
    if (destroyed) {
        return ok();
    }
    Status result = kill();
    auto reaped = kill_and_reap(pid1.pidfd, patience);
    // Only the pidfd is needed to try again.
    auto pidfd = reaped.has_value() ? UniqueFd() : std::move(pid1.pidfd);
    pid1 = Launched{};
    pid1.pidfd = std::move(pidfd);
    auto removed = reaped.has_value() ? cgroup.destroy(patience) : Status(ok());
    destroyed = reaped.has_value() && removed.has_value();
    for (auto* step : {&reaped, &removed}) {
        if (result.has_value() && step->has_error()) {
            result = std::move(*step);
        }
    }
    return result;
}

void Sandbox::State::abandon() {
    const auto patience = ending ? std::chrono::milliseconds(0) : kDestroyPatience;
    // Ignored: whoever wants to know calls destroy() (sandbox.hpp).
    (void)destroy(patience).has_value();
    leave_behind({std::move(pid1.pidfd), {}});  // The cgroup's own destructor does the rest.
}

}  // namespace cellkeep::sandbox
