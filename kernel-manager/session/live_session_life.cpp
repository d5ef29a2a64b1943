// SPDX-License-Identifier: Apache-2.0
//
// The life of a session around its interpreters: a spare's hand-out, activity and culling, the end.
#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/kernel/kernel_state.hpp"
#include "kernel-manager/session/culler.hpp"
#include "kernel-manager/session/live_session.hpp"
#include "kernel-manager/session/session_options.hpp"
#include "protocol/internal_request.hpp"
#include "protocol/limits.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::session {

using std::chrono::steady_clock;
using std::chrono::system_clock;

boost::asio::awaitable<Status> LiveSession::adopt(std::string kernel_id, SessionOptions options) {
    const auto self = shared_from_this();
    if (closed_ || !main_->is_ready()) {
        co_return Error(ErrorCode::kConflict, "hand out: the spare is not ready");
    }
    setup_.spare = false;
    setup_.kernel_id = std::move(kernel_id);
    setup_.options = std::move(options);
    created_at_ = system_clock::now();
    created_steady_ = steady_clock::now();
    activity_ = Activity(created_steady_);
    account_ = SessionAccount(session_limits().consecutive_failures.value_or(0));
    account_.hand_out(usage_.counters());
    BOOST_OUTCOME_CO_TRY(write_files(std::exchange(setup_.options.files, {})));
    BOOST_OUTCOME_CO_TRY(with_context(
        workspace_.make_directory(setup_.options.working_directory), "working_directory"));
    OwnStart own{setup_.options.env, setup_.options.working_directory};
    Status adopted = co_await main_->adopt(std::move(own));
    BOOST_OUTCOME_CO_TRY(std::move(adopted));
    freezer_.note_use();
    watch_life();
    co_return ok();
}

void LiveSession::touch() {
    activity_.touch(steady_clock::now());
}

void LiveSession::note_use() {
    if (!setup_.spare) {
        freezer_.note_use();
    }
}

void LiveSession::review_life() {
    if (life_blocked_) {
        watch_life();
    }
}

void LiveSession::on_left_dead(const Death& death) {
    watch_life();
    if (setup_.spare) {
        setup_.on_end_requested(death);
    }
}

void LiveSession::watch_life() {
    if (closed_ || setup_.spare) {
        return;
    }
    const std::vector<SupervisedKernel*> all = lanes();
    const bool busy = std::any_of(
        all.begin(), all.end(), [](const SupervisedKernel* lane) { return lane->is_busy(); });
    const bool dead = std::all_of(all.begin(), all.end(), [](const SupervisedKernel* lane) {
        return lane->state() == KernelState::kDead;
    });
    const bool connected = clients_.count() > 0;
    const CullDecision decision = decide_cull(
        {.created_at = created_steady_,
         .last_activity = activity_.last(),
         .client_left_at = clients_.left_at(),
         .idle = session_limits().idle,
         .lifetime = session_limits().lifetime,
         .cull_connected = setup_.options.cull.connected,
         .cull_busy = setup_.options.cull.busy,
         .connected = connected,
         .busy = busy,
         .dead = dead},
        steady_clock::now());
    if (decision.verdict != CullDecision::Verdict::kStay) {
        const bool old = decision.verdict == CullDecision::Verdict::kOld;
        setup_.on_end_requested({Death::Kind::kCulled, old ? kCulledForAge : 0});
        return;
    }
    // A client that leaves calls again by itself.
    life_blocked_ = busy;
    life_timer_.cancel();
    if (!decision.ask_again.has_value()) {
        return;
    }
    life_timer_.expires_at(*decision.ask_again);
    life_timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
        if (const auto self = weak.lock(); !error && self) {
            self->watch_life();
        }
    });
}

void LiveSession::end_conversation(const Death& reason) {
    if (std::exchange(closed_, true)) {
        return;
    }
    life_timer_.cancel();
    freezer_.stop();
    if (setup_.proxy) {
        setup_.proxy->close();
    }
    to_launch_.clear();
    for (SupervisedKernel* lane : lanes()) {
        lane->close();
    }
    boost::system::error_code ignored;  // our own duplicate descriptor
    sandbox_events_.close(ignored);
    if (!weak_from_this().expired()) {
        for (const auto& lane : further_) {
            lane->end(reason);
        }
        main_->end(reason);
    }
    main_->mark_dead();
}

void LiveSession::close(Death reason) {
    end_conversation(reason);
    // A failure leaves nothing running or is tried again by the Service (remove_leftovers).
    (void)sandbox_.destroy();
}

}  // namespace cellkeep::session
