// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/kernel_output.hpp"

#include "kernel-manager/execution/execution_events.hpp"
#include "protocol/limits.hpp"

#include <optional>
#include <utility>

namespace cellkeep::session {

KernelOutput::KernelOutput(
    boost::asio::io_context& io,
    OutputFanout* fanout,
    const sandbox::Workspace& workspace,
    Hooks hooks,
    KeepAlive keep_alive)
    : fanout_(fanout),
      workspace_(workspace),
      hooks_(std::move(hooks)),
      restore_alarm_(io, keep_alive),
      join_alarm_(io, std::move(keep_alive)) {}

void KernelOutput::publish(protocol::Message message) {
    hooks_.note(message, run_ != nullptr ? &run_->message() : nullptr);
    if (run_ != nullptr && run_->execution() && run_->is_parent_of(message)) {
        run_->execution()->recorder.on_output(message, &workspace_);
        add_output_event(*run_->execution()->execution, message);
    }
    if (fanout_ == nullptr) {
        return;
    }
    if (StreamJoiner::is_joinable(message)) {
        join(std::move(message));
        return;
    }
    flush();
    show(std::move(message));
}

void KernelOutput::join(protocol::Message message) {
    while (!joiner_.accepts(message)) {
        flush();  // front ends are called, and what they cause may be held now
    }
    joiner_.hold(std::move(message));
    if (joiner_.full() || fanout_->is_congested()) {
        flush();  // if front ends can take no more, it makes the kernel wait
    } else if (!join_alarm_.is_set()) {
        join_alarm_.set_after(kStreamJoinTimeMax, [this] { flush(); });
    }
}

void KernelOutput::flush() {
    join_alarm_.cancel();
    if (std::optional<protocol::Message> joined = joiner_.take()) {
        show(std::move(*joined));
    }
}

std::optional<protocol::Message> KernelOutput::pass_on() {
    join_alarm_.cancel();
    return joiner_.take();
}

void KernelOutput::go_on(protocol::Message joined) {
    if (fanout_ != nullptr && StreamJoiner::is_joinable(joined)) {
        join(std::move(joined));
    } else if (fanout_ != nullptr) {
        show(std::move(joined));
    }
}

void KernelOutput::show(protocol::Message message) {
    if (fanout_->show(std::move(message)) && !pressure_lifted_) {
        hooks_.pause_reading();
    }
}

void KernelOutput::lift_pressure() {
    pressure_lifted_ = true;
    hooks_.resume_reading();
}

void KernelOutput::restore_pressure() {
    pressure_lifted_ = false;
    restore_alarm_.cancel();
}

void KernelOutput::restore_pressure_soon() {
    restore_alarm_.set_after(limits::kInterruptGrace, [this] {
        if (run_ != nullptr && run_->cut() == Cut::kInterrupt) {
            pressure_lifted_ = false;
        }
    });
}

}  // namespace cellkeep::session
