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
    return can_freeze(shared_.sandbox.isolation()) ? shared_.setup.freeze_after
                                                   : std::chrono::seconds(0);
}

bool LiveSession::is_at_work() const {
    const std::vector<SupervisedKernel*> all = lanes();
    // One that is dead for good is as if it had never been, unless it is the last.
    const bool lives = std::any_of(
        all.begin(), all.end(), [](const SupervisedKernel* lane) { return lane->has_process(); });
    const bool works = std::any_of(all.begin(), all.end(), [](const SupervisedKernel* lane) {
        return lane->is_at_work() && lane->state() != KernelState::kDead;
    });
    return shared_.closed || shared_.setup.spare || !lives || works ||
           // What the other side of a connection says next, nobody here knows.
           (shared_.setup.proxy && shared_.setup.proxy->connections() > 0);
}

IdleFreezer::Hooks LiveSession::freezer_hooks() {
    return {
        .busy = [this] { return is_at_work(); },
        .look = [this]() -> Result<RestLook> {
            BOOST_OUTCOME_TRY(const sandbox::Usage usage, shared_.sandbox.usage());
            BOOST_OUTCOME_TRY(const bool waiting, shared_.sandbox.is_waiting());
            return RestLook{waiting, usage.cpu_time};
        },
        .freeze = [this]() -> Status {
            // Nobody waits for it: it comes when its threads next run, and thaw() takes it back
            // before as well as after.
            Status frozen = shared_.sandbox.freeze(std::chrono::milliseconds(0));
            const bool coming = frozen.has_error() && frozen.error().code() == ErrorCode::kTimeout;
            return coming ? Status(ok()) : std::move(frozen);
        },
        .thaw = [this] { return shared_.sandbox.thaw(); },
        .changed =
            [this](bool frozen) {
                if (shared_.setup.log_frozen) {
                    shared_.setup.log_frozen(frozen);
                }
            },
        .failed =
            [this](const Error& error) {
                shared_.setup.log(
                    "session " + shared_.setup.id + " is not frozen: " + error.message());
            }};
}

}  // namespace cellkeep::session
