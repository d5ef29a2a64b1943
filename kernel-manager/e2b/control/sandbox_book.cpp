// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/control/sandbox_book.hpp"

#include "kernel-manager/e2b/wire/sandbox_place.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace cellkeep::e2b {

using Clock = SandboxRecord::Clock;

// It outlives the io_context's work: nothing has to be kept alive for the alarm.
SandboxBook::SandboxBook(boost::asio::io_context& io, session::SessionService& service)
    : service_(service), alarm_(io, [] { return std::make_shared<const int>(0); }) {}

Status SandboxBook::on_session_created(const std::shared_ptr<session::Session>& /*session*/) {
    return ok();
}

void SandboxBook::on_session_closed(const std::string& session_id) {
    records_.erase(session_id);
    // An alarm that is set keeps a server that stops from coming to its end.
    set_alarm();
}

SandboxBook::SessionPtr SandboxBook::find(
    const http::Principal& principal, std::string_view sandbox_id) const {
    const auto id = session_id_of(sandbox_id);
    auto session = id ? service_.find(*id) : nullptr;
    const bool visible = session != nullptr && http::may_see(principal, session->info().owner);
    return visible ? session : nullptr;
}

void SandboxBook::keep(const std::string& session_id, SandboxRecord record) {
    records_.insert_or_assign(session_id, std::move(record));
    set_alarm();
}

SandboxRecord SandboxBook::record(const std::string& session_id) const {
    const auto found = records_.find(session_id);
    return found == records_.end() ? SandboxRecord{} : found->second;
}

void SandboxBook::set_end(const session::Session& session, std::chrono::seconds timeout) {
    SandboxRecord& record = records_[session.id()];
    record.lives = timeout;
    if (!is_paused(session)) {
        record.ends_at = Clock::now() + timeout;
    }
    set_alarm();
}

Status SandboxBook::pause(session::Session& session) {
    if (is_paused(session)) {
        return Error(ErrorCode::kConflict, "The sandbox is paused already.");
    }
    const std::string& id = session.id();
    BOOST_OUTCOME_TRY(session.freeze([this, id] { on_woken(id); }));
    // Paused time does not count.
    records_[id].ends_at.reset();
    set_alarm();
    return ok();
}

void SandboxBook::on_woken(const std::string& session_id) {
    const auto found = records_.find(session_id);
    if (found == records_.end() || found->second.lives.count() == 0) {
        return;
    }
    found->second.ends_at = Clock::now() + found->second.lives;
    set_alarm();
}

bool SandboxBook::resume(session::Session& session) {
    const bool paused = is_paused(session);
    session.wake();
    return paused;
}

void SandboxBook::leave() {
    records_.clear();
    alarm_.cancel();
}

void SandboxBook::go_on(Records records) {
    records_ = std::move(records);
    for (const auto& one : records_) {
        const SessionPtr session = service_.find(one.first);
        if (session != nullptr && is_paused(*session)) {
            // The session is frozen already: this call only registers the listener for its waking.
            // Ignored: the session may have ended.
            (void)session->freeze([this, id = one.first] { on_woken(id); }).has_value();
        }
    }
    set_alarm();
}

void SandboxBook::set_alarm() {
    std::optional<Clock::time_point> first;
    for (const auto& [id, record] : records_) {
        if (record.ends_at && (!first || *record.ends_at < *first)) {
            first = record.ends_at;
        }
    }
    if (!first) {
        alarm_.cancel();
        return;
    }
    const auto wait = std::max(*first - Clock::now(), Clock::duration::zero());
    alarm_.set_after(wait, [this] { end_due(); });
}

void SandboxBook::end_due() {
    const auto now = Clock::now();
    std::vector<std::string> due;
    for (const auto& [id, record] : records_) {
        if (record.ends_at && *record.ends_at <= now) {
            due.push_back(id);
        }
    }
    for (const std::string& id : due) {
        end_one(id);
    }
    set_alarm();
}

void SandboxBook::end_one(const std::string& session_id) {
    SandboxRecord& record = records_[session_id];
    record.ends_at.reset();
    const SessionPtr session = service_.find(session_id);
    if (session == nullptr) {
        records_.erase(session_id);
        return;
    }
    if (record.pause_at_end && pause(*session).has_value()) {
        return;
    }
    // Ignored: it may have ended meanwhile.
    (void)service_.remove(session_id);
}

}  // namespace cellkeep::e2b
