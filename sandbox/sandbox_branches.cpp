// SPDX-License-Identifier: Apache-2.0
//
// What a Sandbox has to do with branches: its own, and those of which it is one.
#include "sandbox/sandbox.hpp"
#include "sandbox/server/sandbox_state.hpp"

#include <utility>

namespace cellkeep::sandbox {

Result<Sandbox> Sandbox::create(const Policy& policy, const BranchPlace& place) {
    BOOST_OUTCOME_TRY(
        auto assembled, assemble(policy, MissingControl::kRefuse, nullptr, nullptr, &place));
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
    state_->pid1 = Launched{};
    state_->ending = true;
    state_->destroyed = true;
    return Sandbox(std::move(rest));
}

}  // namespace cellkeep::sandbox
