// SPDX-License-Identifier: Apache-2.0
//
// The life of a session around its interpreters: a spare's hand-out, activity and culling, the end.
#include "kernel-manager/session/culler.hpp"
#include "kernel-manager/session/live_session.hpp"
#include "protocol/internal_request.hpp"
#include "protocol/limits.hpp"

#include <utility>

namespace cellkeep::session {

using protocol::Channel;
using protocol::Message;
using std::chrono::steady_clock;
using std::chrono::system_clock;

boost::asio::awaitable<Status> LiveSession::adopt(std::string kernel_id, SessionOptions options) {
    const auto self = shared_from_this();
    if (closed_ || !process_ || ended_.has_value() || state_ != KernelState::kIdle) {
        co_return Error(ErrorCode::kConflict, "hand out: the spare is not ready");
    }
    setup_.spare = false;
    setup_.kernel_id = std::move(kernel_id);
    setup_.options = std::move(options);
    created_at_ = system_clock::now();
    created_steady_ = steady_clock::now();
    activity_ = Activity(created_steady_);
    guard_ = RunGuard(setup_.options.limits.consecutive_failures.value_or(0));
    guard_.hand_out(counters_or_nothing(), setup_.options.limits, created_steady_);
    BOOST_OUTCOME_CO_TRY(write_files(std::exchange(setup_.options.files, {})));
    BOOST_OUTCOME_CO_TRY(with_context(
        workspace_.make_directory(setup_.options.working_directory), "working_directory"));
    if (!setup_.options.env.empty() || !setup_.options.working_directory.empty()) {
        const Message request = messages_.request(
            Channel::kControl,
            protocol::kAdoptRequest,
            {{"env", setup_.options.env}, {"working_directory", prepare_working_directory()}});
        adopt_request_id_ = request.header().msg_id;
        adopted_ = std::make_shared<Completion<Status>>(io_);
        const auto adopted = adopted_;
        start_timer_.expires_after(setup_.start_timeout);
        start_timer_.async_wait([adopted](const boost::system::error_code& error) {
            if (!error) {
                adopted->set(Error(ErrorCode::kTimeout, "hand out: the spare does not answer"));
            }
        });
        BOOST_OUTCOME_CO_TRY(process_->send(request));
        Status done = co_await Completion<Status>::wait(adopted);
        adopted_.reset();
        start_timer_.cancel();
        BOOST_OUTCOME_CO_TRY(std::move(done));
    }
    freezer_.note_use();
    watch_life();
    co_return ok();
}

void LiveSession::touch() {
    activity_.touch(steady_clock::now());
}

bool LiveSession::is_tracked_running() const {
    return current_.has_value() && is_tracked(current_->request.message.header().msg_type);
}

void LiveSession::watch_life() {
    if (closed_ || setup_.spare) {
        return;
    }
    const bool busy = current_.has_value() || queue_.size() > 0;
    const bool connected = clients_.count() > 0;
    const CullDecision decision = decide_cull(
        {.created_at = created_steady_,
         .last_activity = activity_.last(),
         .client_left_at = clients_.left_at(),
         .idle = setup_.options.limits.idle,
         .lifetime = setup_.options.limits.lifetime,
         .cull_connected = setup_.options.cull.connected,
         .cull_busy = setup_.options.cull.busy,
         .connected = connected,
         .busy = busy,
         .dead = state_ == KernelState::kDead},
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
    artifacts_->close();
    boost::system::error_code ignored;  // our own duplicate descriptor
    sandbox_events_.close(ignored);
    if (!weak_from_this().expired()) {
        lose_kernel(reason);
        settle_ready(Error(ErrorCode::kCancelled, describe(reason)));
        const std::string text = describe_end(reason, Aftermath::kEnded);
        for (auto& [request, origin] : std::exchange(waiting_for_info_, {})) {
            publish(messages_.status("busy", &request));
            origin->deliver(messages_.error_reply(request, "SessionClosed", text));
            publish(messages_.status("idle", &request));
        }
        publish(messages_.status("dead", nullptr, to_string(reason), text));
    }
    state_ = KernelState::kDead;
}

void LiveSession::close(Death reason) {
    end_conversation(reason);
    // A failure leaves nothing running or is tried again by the Service (remove_leftovers).
    (void)sandbox_.destroy();
}

}  // namespace cellkeep::session
