// SPDX-License-Identifier: Apache-2.0
//
// What a Sandbox has to do with copies that sleep and with branches: its own, and those of which it
// is one. And its way from one program in the server's process to another.
#include "sandbox/sandbox.hpp"
#include "sandbox/server/sandbox_state.hpp"
#include "sandbox/server/zygote.hpp"

#include <signal.h>

#include <utility>

namespace cellkeep::sandbox {

Result<Sandbox> Sandbox::create(const Policy& policy, BranchLauncher& launcher) {
    BOOST_OUTCOME_TRY(
        auto assembled, assemble(policy, MissingControl::kRefuse, nullptr, nullptr, &launcher));
    return Sandbox(std::make_unique<SandboxState>(SandboxState{
        std::move(assembled.pid1),
        std::move(assembled.cgroup),
        std::move(assembled.isolation),
        nullptr,
        assembled.file_uid,
        assembled.file_gid}));
}

const std::vector<UniqueFd>& Sandbox::namespaces() const {
    return state_->pid1.namespaces;
}

std::vector<std::string> Sandbox::cgroup_files() const {
    return state_->outer_procs_files();
}

Result<HaltedLeaf> Sandbox::halt(WorkerGroup group) {
    if (state_->ending || state_->sleepers_among == group) {
        return Error(ErrorCode::kUnavailable, "halt: the group cannot be stopped now");
    }
    BOOST_OUTCOME_TRY(state_->prepare_kill());
    return state_->cgroup.halt_group(group);
}

Status Sandbox::give_way(WorkerGroup group) {
    return state_->give_sleepers_cgroup(group);
}

bool Sandbox::has_stray_sleepers() const {
    return state_->sleepers_among.has_value() && !state_->ending;
}

std::string Sandbox::sleepers_file() {
    // Opened, because that makes the cgroup. Ignored: without one there is no file, either.
    (void)state_->cgroup.open_group(kSleepingGroup).has_value();
    return state_->cgroup.group_procs_file(kSleepingGroup);
}

Status Sandbox::sleepers_moved() {
    const auto group = std::exchange(state_->sleepers_among, std::nullopt);
    const bool waits = std::exchange(state_->sweep_waits, false);
    return group && waits ? begin_sweep(*group) : Status(ok());
}

Status Sandbox::let_pass(pid_t inside, std::uint32_t calls) {
    return state_->channel.let_pass(inside, calls);
}

Status Sandbox::retire() {
    return state_->retire();
}

Sandbox Sandbox::set_aside() {
    auto rest = std::make_unique<SandboxState>(SandboxState{
        std::move(state_->pid1),
        std::move(state_->cgroup),
        state_->isolation,
        state_->zygote,
        state_->file_uid,
        state_->file_gid});
    rest->channel = std::move(state_->channel);
    rest->frozen = std::exchange(state_->frozen, false);
    rest->destroyed = state_->destroyed;
    rest->death = state_->death;
    state_->pid1 = Launched{};
    state_->ending = true;
    state_->destroyed = true;
    return Sandbox(std::move(rest));
}

Sandbox Sandbox::take_over(PassedSandbox passed, std::shared_ptr<Zygote> zygote) {
    Launched pid1;
    pid1.pidfd = std::move(passed.pidfd);
    pid1.events = std::move(passed.events);
    pid1.workspace = std::move(passed.workspace);
    auto state = std::make_unique<SandboxState>(SandboxState{
        std::move(pid1),
        SessionCgroup::take_over(std::move(passed.cgroup)),
        std::move(passed.isolation),
        std::move(zygote),
        passed.file_uid,
        passed.file_gid});
    state->channel = InitChannel(std::move(passed.control), passed.last_request);
    state->last_worker = passed.last_worker;
    return Sandbox(std::move(state));
}

PassedSandbox Sandbox::pass_on() {
    PassedSandbox passed;
    passed.last_request = state_->channel.last_sequence();
    passed.control = state_->channel.pass_on();
    passed.pidfd = std::move(state_->pid1.pidfd);
    passed.events = std::move(state_->pid1.events);
    passed.workspace = std::move(state_->pid1.workspace);
    passed.cgroup = state_->cgroup.pass_on();
    passed.isolation = state_->isolation;
    passed.file_uid = state_->file_uid;
    passed.file_gid = state_->file_gid;
    passed.last_worker = state_->last_worker;
    state_->pid1 = Launched{};
    state_->ending = true;
    state_->destroyed = true;
    return passed;
}

Result<std::uint32_t> Sandbox::ask_for_death_signal(bool wanted) {
    if (state_->ending || state_->given_up) {
        return Error(ErrorCode::kConflict, "death signal: the sandbox is destroyed");
    }
    RequestHeader header;
    header.kind = RequestKind::kDeathSignal;
    header.signal = wanted ? SIGKILL : 0;
    return with_context(state_->channel.send(header, "", {}), "death signal");
}

Status Sandbox::wait_for_death_signal(std::uint32_t asked, std::chrono::milliseconds patience) {
    BOOST_OUTCOME_TRY(
        const auto reply, with_context(state_->channel.wait(asked, patience), "death signal"));
    return reply.message.error == 0 ? Status(ok())
                                    : Error::from_errno(reply.message.error, "death signal");
}

}  // namespace cellkeep::sandbox
