// SPDX-License-Identifier: Apache-2.0
//
// What LiveSession tells its freezer: whether the session is at work, what its sandbox shows, and
// how it is frozen and thawed.
#include "kernel-manager/kernel/kernel_state.hpp"
#include "kernel-manager/session/live_session.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace cellkeep::session {

namespace {

bool can_freeze(const sandbox::IsolationReport& isolation) {
    return std::any_of(
        isolation.controls.begin(), isolation.controls.end(), [](const sandbox::Control& control) {
            return control.name == "freeze" && control.state == sandbox::ControlState::kApplied;
        });
}

}  // namespace

std::chrono::seconds LiveSession::freeze_after() const {
    // Without a cgroup to freeze there is nothing to look for; the isolation report says why.
    return can_freeze(sandbox_.isolation()) ? setup_.freeze_after : std::chrono::seconds(0);
}

bool LiveSession::is_at_work() const {
    const std::vector<SupervisedKernel*> all = lanes();
    // One that is dead for good is as if it had never been, unless it is the last.
    const bool lives = std::any_of(
        all.begin(), all.end(), [](const SupervisedKernel* lane) { return lane->has_process(); });
    const bool works = std::any_of(all.begin(), all.end(), [](const SupervisedKernel* lane) {
        return lane->is_at_work() && lane->state() != KernelState::kDead;
    });
    return closed_ || setup_.spare || !lives || works ||
           // What the other side of a connection says next, nobody here knows.
           (setup_.proxy && setup_.proxy->connections() > 0);
}

IdleFreezer::Hooks LiveSession::freezer_hooks() {
    return {
        .busy = [this] { return is_at_work(); },
        .look = [this]() -> Result<RestLook> {
            BOOST_OUTCOME_TRY(const sandbox::Usage usage, sandbox_.usage());
            BOOST_OUTCOME_TRY(const bool waiting, sandbox_.is_waiting());
            return RestLook{waiting, usage.cpu_time};
        },
        .freeze = [this]() -> Status {
            // Nobody waits for it: it comes when its threads next run, and thaw() takes it back
            // before as well as after.
            Status frozen = sandbox_.freeze(std::chrono::milliseconds(0));
            const bool coming = frozen.has_error() && frozen.error().code() == ErrorCode::kTimeout;
            return coming ? Status(ok()) : std::move(frozen);
        },
        .thaw = [this] { return sandbox_.thaw(); },
        .changed =
            [this](bool frozen) {
                if (setup_.log_frozen) {
                    setup_.log_frozen(frozen);
                }
            },
        .failed =
            [this](const Error& error) {
                setup_.log("session " + setup_.id + " is not frozen: " + error.message());
            }};
}

}  // namespace cellkeep::session
