// SPDX-License-Identifier: Apache-2.0
#include "sandbox/server/zygote.hpp"

#include "protocol/support/syscall.hpp"
#include "sandbox/policy/host_mode.hpp"
#include "sandbox/server/launcher_process.hpp"
#include "sandbox/shared/messages.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace cellkeep::sandbox {

namespace {

bool operator==(const ReadOnlyPath& one, const ReadOnlyPath& other) {
    return one.source == other.source && one.target == other.target &&
           one.executable == other.executable && one.optional == other.optional &&
           one.over == other.over;
}

/// How often a wait of seconds looks whether it is still wanted.
constexpr std::chrono::milliseconds kLook{100};

Status await_readiness(
    const UniqueFd& control,
    std::chrono::milliseconds patience,
    const std::function<bool()>& given_up) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (true) {
        const auto now = std::chrono::steady_clock::now();
        if (wait_until_readable(control.get(), std::min(deadline, now + kLook)).has_value()) {
            return ok();
        }
        if (now >= deadline) {
            return Error(ErrorCode::kTimeout, "zygote: it was not ready in time");
        }
        if (given_up && given_up()) {
            return Error(ErrorCode::kCancelled, "zygote: it is not wanted any more");
        }
    }
}

Result<ZygoteReady> await_program(const UniqueFd& control, const ZygoteSpec& spec) {
    BOOST_OUTCOME_TRY(await_readiness(control, spec.patience, spec.given_up));
    ZygoteReady ready;
    BOOST_OUTCOME_TRY(
        const auto received,
        receive_with_fds(control.get(), std::as_writable_bytes(std::span(&ready, 1))));
    if (received.bytes != sizeof(ready)) {
        return Error(ErrorCode::kUnavailable, "zygote: it ended before it was ready");
    }
    if (ready.threads != 1) {
        return Error(
            ErrorCode::kUnavailable,
            "zygote: it has " + std::to_string(ready.threads) +
                " threads, and only a process with one can be forked",
            "Something that it loads beforehand starts threads: leave it out.");
    }
    if (ready.shared_mappings != 0) {
        return Error(
            ErrorCode::kUnavailable,
            "zygote: it has " + std::to_string(ready.shared_mappings) +
                " mappings of memory that all its forks would share",
            "Something that it loads beforehand makes them: leave it out.");
    }
    if (ready.open_files != 0) {
        return Error(
            ErrorCode::kUnavailable,
            "zygote: it keeps " + std::to_string(ready.open_files) +
                " files open, which all its forks would share",
            "Something that it loads beforehand keeps them: leave it out, or let it close them.");
    }
    return ready;
}

}  // namespace

Zygote::Zygote(
    Policy policy, Sandbox sandbox, Worker worker, UniqueFd control, std::uint64_t data_bytes)
    : policy_(std::move(policy)),
      sandbox_(std::move(sandbox)),
      worker_(std::move(worker)),
      control_(std::move(control)),
      data_bytes_(data_bytes) {}

Result<std::shared_ptr<Zygote>> Zygote::start(ZygoteSpec spec) {
    if (!spec.policy.zygote) {
        return Error(ErrorCode::kInvalidArgument, "zygote: its policy is not a zygote's");
    }
    BOOST_OUTCOME_TRY(auto control, make_socket_pair(SOCK_SEQPACKET));
    BOOST_OUTCOME_TRY(auto sandbox, Sandbox::create(spec.policy));
    spec.program.link_fd = std::move(control.second);
    BOOST_OUTCOME_TRY(auto worker, sandbox.start(std::move(spec.program)));
    BOOST_OUTCOME_TRY(const auto ready, await_program(control.first, spec));
    // A zygote that does not read must not hold the server up.
    BOOST_OUTCOME_TRY(set_nonblocking(control.first.get()));
    // Not make_shared: the constructor is private.
    return std::shared_ptr<Zygote>(new Zygote(
        std::move(spec.policy),
        std::move(sandbox),
        std::move(worker),
        std::move(control.first),
        ready.data_bytes));
}

bool Zygote::covers(const Policy& policy) const {
    const auto has_id = [this](std::uint32_t id) {
        // Of an ordinary user's sandboxes all have the user's.
        return run_mode() != RunMode::kRoot ||
               (id >= policy_.zygote->first_id &&
                id - policy_.zygote->first_id < policy_.zygote->id_count);
    };
    return policy.inputs.empty() && !policy.zygote && has_id(policy.host_uid) &&
           has_id(policy.host_gid) &&
           std::equal(
               policy.read_only.begin(),
               policy.read_only.end(),
               policy_.read_only.begin(),
               policy_.read_only.end(),
               [](const ReadOnlyPath& one, const ReadOnlyPath& other) { return one == other; });
}

Status Zygote::request(std::span<const int> fds) const {
    LaunchRequest request;
    request.cgroup_files = static_cast<std::uint32_t>(fds.size() - kLaunchFdsMin);
    Status sent = send_with_fds(control_.get(), std::as_bytes(std::span(&request, 1)), fds);
    if (sent.has_error()) {
        return Error(ErrorCode::kUnavailable, "zygote: " + sent.error().message());
    }
    return ok();
}

std::shared_ptr<Zygote> Zygote::take_over(PassedSandbox passed) {
    return std::shared_ptr<Zygote>(
        new Zygote({}, Sandbox::take_over(std::move(passed)), {}, {}, 0));
}

PassedSandbox Zygote::pass_on() {
    retire();
    return sandbox_.pass_on();
}

bool Zygote::alive() const {
    if (!worker_.pidfd) {
        return false;
    }
    pollfd process{worker_.pidfd.get(), POLLIN, 0};
    return ::poll(&process, 1, 0) == 0;
}

void Zygote::retire() {
    // Ignored: then it has ended by itself.
    (void)::shutdown(control_.get(), SHUT_WR);
}

// NOLINTNEXTLINE(readability-make-member-function-const): it ends what it owns.
void Zygote::end() {
    // Ignored: ESRCH means that it has ended by itself.
    (void)::syscall(SYS_pidfd_send_signal, worker_.pidfd.get(), SIGKILL, nullptr, 0);
}

}  // namespace cellkeep::sandbox
