// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/idle_freezer.hpp"

#include <utility>

namespace cellkeep::session {

using std::chrono::steady_clock;

FreezeDecision decide_freeze(const FreezeSituation& situation, FreezeSituation::Time now) {
    if (situation.after.count() == 0 || situation.frozen) {
        return {};
    }
    if (situation.busy) {
        return {false, now + situation.after};
    }
    const auto half = situation.after / 2;
    FreezeSituation::Time due = situation.last_used + half;
    if (situation.looked_at.has_value() && *situation.looked_at >= situation.last_used) {
        due = *situation.looked_at + half;
    }
    if (now < due) {
        return {false, due};
    }
    return {true, now + half};
}

bool shows_rest(const std::optional<RestLook>& before, const RestLook& now) {
    return before.has_value() && before->waiting && now.waiting && before->cpu_time == now.cpu_time;
}

IdleFreezer::IdleFreezer(boost::asio::io_context& io, std::chrono::milliseconds after, Hooks hooks)
    : after_(after), hooks_(std::move(hooks)), timer_(io) {}

void IdleFreezer::note_use() {
    if (after_.count() == 0) {
        return;
    }
    last_used_ = steady_clock::now();
    before_.reset();
    // A timer that goes off too early looks when it should have: none is moved for each request.
    if (!armed_ && !frozen_) {
        ask();
    }
}

void IdleFreezer::wake() {
    if (!frozen_) {
        if (paused()) {  // before it stood still
            end_pause();
            tell_woken();
        }
        return;
    }
    if (const Status thawed = hooks_.thaw(); thawed.has_error()) {
        hooks_.failed(thawed.error());  // the deadline of the next request reports the rest
    }
    frozen_ = false;
    end_pause();
    hooks_.changed(false);
    note_use();
    tell_woken();
}

void IdleFreezer::tell_woken() {
    if (const auto woken = std::exchange(woken_, {})) {
        woken();
    }
}

Status IdleFreezer::freeze(std::function<void()> woken) {
    if (!frozen_ && !hooks_.settling()) {
        BOOST_OUTCOME_TRY(stop_processes());
    }
    if (!paused()) {
        paused_since_ = steady_clock::now();
    }
    woken_ = std::move(woken);
    return ok();
}

void IdleFreezer::go_on_paused(FreezeSituation::Time since) {
    frozen_ = true;
    paused_since_ = since;
}

void IdleFreezer::end_pause() {
    paused_before_ = paused_for(steady_clock::now());
    paused_since_.reset();
}

std::chrono::nanoseconds IdleFreezer::paused_for(FreezeSituation::Time now) const {
    return paused_before_ + (paused() ? now - *paused_since_ : std::chrono::nanoseconds(0));
}

Status IdleFreezer::stop_processes() {
    if (Status done = hooks_.freeze(); done.has_error()) {
        (void)hooks_.thaw().has_value();  // there may be nothing to take back
        return done;
    }
    frozen_ = true;
    hooks_.changed(true);
    return ok();
}

void IdleFreezer::settle() {
    if (!paused() || frozen_ || hooks_.settling()) {
        return;
    }
    if (const Status done = stop_processes(); done.has_error()) {
        hooks_.failed(done.error());
        end_pause();
        tell_woken();
    }
}

void IdleFreezer::stop() {
    after_ = std::chrono::milliseconds(0);
    armed_ = false;
    timer_.cancel();
}

void IdleFreezer::ask() {
    const auto now = steady_clock::now();
    const FreezeDecision decision = decide_freeze(
        {.after = after_,
         .busy = hooks_.busy(),
         .frozen = frozen_,
         .last_used = last_used_,
         .looked_at = looked_at_},
        now);
    if (decision.look) {
        looked_at_ = now;
        look();
    }
    if (decision.ask_again.has_value() && !frozen_ && after_.count() > 0) {
        arm(*decision.ask_again);
    }
}

void IdleFreezer::arm(FreezeSituation::Time when) {
    armed_ = true;
    timer_.expires_at(when);
    timer_.async_wait(
        [this, alive = std::weak_ptr<bool>(alive_)](const boost::system::error_code& error) {
            if (!error && !alive.expired() && armed_) {
                armed_ = false;
                ask();
            }
        });
}

void IdleFreezer::look() {
    const Result<RestLook> seen = hooks_.look();
    if (seen.has_error()) {
        hooks_.failed(seen.error());
        stop();
        return;
    }
    if (!shows_rest(before_, seen.value())) {
        before_ = seen.value();
        return;
    }
    before_.reset();
    if (const Status done = stop_processes(); done.has_error()) {
        hooks_.failed(done.error());
        stop();
    }
}

}  // namespace cellkeep::session
