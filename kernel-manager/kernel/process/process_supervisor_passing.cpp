// SPDX-License-Identifier: Apache-2.0
//
// A kernel's process on its way from one program in the server's process to another.
#include "kernel-manager/kernel/process/process_supervisor.hpp"

#include <utility>

namespace cellkeep::session {

bool ProcessSupervisor::is_at_rest() const {
    return is_left_dead() || is_live_at_rest();
}

bool ProcessSupervisor::is_live_at_rest() const {
    return takes_requests() && !is_adopting() && !is_copying() && !claimed_end_.is_asking() &&
           process_->is_at_rest();
}

PassedProcess ProcessSupervisor::pass_on() {
    PassedProcess passed;
    if (process_) {
        passed.interpreter = process_->pass_on();
    } else {
        passed.death = death_;
    }
    passed.session = messages_.session();
    passed.info = info().value_or(nlohmann::json());
    passed.restarts = restart_policy_.restarts();
    passed.deaths = restart_policy_.deaths();
    passed.oom_kills = end_.oom_kills_seen();
    passed.claimed_end = claimed_end_.deadline();
    process_.reset();
    claimed_end_.settle();
    start_alarm_.cancel();
    end_alarm_.cancel();
    closed_ = true;
    return passed;
}

Status ProcessSupervisor::go_on(
    PassedProcess passed,
    const std::function<
        Result<std::unique_ptr<Interpreter>>(PassedInterpreter, Interpreter::Events)>& connect) {
    end_.begin();
    end_.see_oom_kills(passed.oom_kills);
    restart_policy_.go_on(passed.restarts, std::move(passed.deaths));
    messages_ = ServerMessages(std::move(passed.session));
    ++life_;
    if (!passed.death) {
        BOOST_OUTCOME_TRY(process_, connect(std::move(passed.interpreter), events()));
    }
    death_ = passed.death;
    if (!passed.info.is_null()) {
        handshake_.go_on(std::move(passed.info));
    }
    change(death_ ? KernelEvent::kDied : KernelEvent::kReady);
    if (passed.claimed_end) {
        watch_claimed_end(*passed.claimed_end);
    }
    return ok();
}

}  // namespace cellkeep::session
