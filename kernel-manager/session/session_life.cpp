// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/session_life.hpp"

#include "kernel-manager/limits/death_notice.hpp"
#include "kernel-manager/session/culler.hpp"

#include <utility>

namespace cellkeep::session {

using std::chrono::steady_clock;
using std::chrono::system_clock;

SessionLife::SessionLife(
    boost::asio::io_context& io, const SessionOptions& options, Hooks hooks, KeepAlive keep_session)
    : options_(options),
      hooks_(std::move(hooks)),
      created_at_(system_clock::now()),
      created_steady_(steady_clock::now()),
      activity_(created_steady_),
      clients_([this] { review(); }),
      alarm_(io, std::move(keep_session)) {}

void SessionLife::begin_anew() {
    created_at_ = system_clock::now();
    created_steady_ = steady_clock::now();
    activity_ = Activity(created_steady_);
}

void SessionLife::go_on(const Passed& passed) {
    created_at_ = passed.created_at;
    created_steady_ = passed.created_steady;
    activity_ = Activity(passed.last_activity);
    clients_.go_on(passed.client_left_at);
}

system_clock::time_point SessionLife::last_activity() const {
    return created_at_ +
           std::chrono::duration_cast<system_clock::duration>(activity_.last() - created_steady_);
}

void SessionLife::review_if_kept() {
    if (kept_) {
        review();
    }
}

void SessionLife::review() {
    if (stopped_ || hooks_.is_spare()) {
        return;
    }
    const bool busy = hooks_.is_busy();
    const auto now = steady_clock::now();
    const CullDecision decision = decide_cull(
        {.created_at = created_steady_,
         .last_activity = activity_.last(),
         .client_left_at = clients_.left_at(),
         .idle = options_.limits.idle,
         .lifetime = options_.limits.lifetime,
         .cull_connected = options_.cull.connected,
         .cull_busy = options_.cull.busy,
         .connected = clients_.count() > 0,
         .busy = busy,
         .dead = hooks_.is_dead()},
        now);
    if (decision.verdict != CullDecision::Verdict::kStay) {
        const bool old = decision.verdict == CullDecision::Verdict::kOld;
        hooks_.end({Death::Kind::kCulled, old ? kCulledForAge : 0});
        return;
    }
    // A client that leaves calls again by itself.
    kept_ = busy;
    alarm_.cancel();
    if (decision.ask_again.has_value()) {
        alarm_.set_after(*decision.ask_again - now, [this] { review(); });
    }
}

void SessionLife::stop() {
    stopped_ = true;
    alarm_.cancel();
}

}  // namespace cellkeep::session
