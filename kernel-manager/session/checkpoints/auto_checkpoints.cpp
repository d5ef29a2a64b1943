// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/checkpoints/auto_checkpoints.hpp"

#include <utility>

namespace cellkeep::session {

using checkpoint::AutoCheckpoints;

void AutoCheckpointer::note_run(std::chrono::steady_clock::duration took) {
    const AutoCheckpoints when = hooks_.when();
    if (when == AutoCheckpoints::kEach ||
        (when == AutoCheckpoints::kCostly && took >= checkpoint::kCostlyRun)) {
        due_ = true;
        if (!settled_) {
            settled_ = std::make_shared<Completion<bool>>(io_);
        }
        patience_alarm_.set_after(patience_, [this] {
            if (!making_) {
                finish();
            }
        });
    }
}

void AutoCheckpointer::review() {
    if (due_ && !making_ && hooks_.is_at_rest()) {
        making_ = true;
        hooks_.make();
    }
}

void AutoCheckpointer::finish() {
    settle();
    hooks_.release();
}

void AutoCheckpointer::stop() {
    settle();
}

void AutoCheckpointer::settle() {
    patience_alarm_.cancel();
    due_ = false;
    making_ = false;
    if (const auto settled = std::exchange(settled_, nullptr)) {
        settled->set(true);
    }
}

boost::asio::awaitable<void> AutoCheckpointer::wait() {
    if (settled_) {
        auto settled = settled_;
        (void)co_await Completion<bool>::wait(std::move(settled));
    }
}

}  // namespace cellkeep::session
