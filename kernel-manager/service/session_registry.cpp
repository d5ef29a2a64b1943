// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/service/session_registry.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::session {

namespace {

bool has_id(const SessionEntry& entry, const std::string& id) {
    return entry.session->id() == id || entry.session->kernel_id() == id;
}

}  // namespace

Status SessionRegistry::add(SessionEntry& entry) {
    BOOST_OUTCOME_TRY(announce(entry.session));
    entries_.push_back(std::move(entry));
    return ok();
}

Status SessionRegistry::announce(const std::shared_ptr<ManagedSession>& session) const {
    for (SessionListener* listener : listeners_) {
        auto heard = listener->on_session_created(session);
        if (heard.has_error()) {
            for (SessionListener* one : listeners_) {
                one->on_session_closed(session->id());
            }
            return heard;
        }
    }
    return ok();
}

std::shared_ptr<ManagedSession> SessionRegistry::find(const std::string& id) const {
    const auto found = std::find_if(
        entries_.begin(), entries_.end(), [&](const auto& entry) { return has_id(entry, id); });
    return found == entries_.end() ? nullptr : found->session;
}

std::vector<std::shared_ptr<Session>> SessionRegistry::list() const {
    std::vector<std::shared_ptr<Session>> all;
    all.reserve(entries_.size());
    for (const SessionEntry& entry : entries_) {
        all.push_back(entry.session);
    }
    return all;
}

Status SessionRegistry::remove(const std::string& id, Death reason) {
    const auto found = std::find_if(
        entries_.begin(), entries_.end(), [&](const auto& entry) { return has_id(entry, id); });
    if (found == entries_.end()) {
        return Error(ErrorCode::kNotFound, "session " + id + ": there is none");
    }
    SessionEntry entry = std::move(*found);
    entries_.erase(found);
    close(std::move(entry), reason);
    return ok();
}

std::vector<std::string> SessionRegistry::remove_lost() {
    std::vector<std::string> lost;
    for (const SessionEntry& entry : entries_) {
        if (entry.session->is_lost()) {
            lost.push_back(entry.session->id());
        }
    }
    std::vector<std::string> ended;
    for (const std::string& id : lost) {
        // Not found: the end of one before was its end, too.
        if (remove(id, {Death::Kind::kSandboxDied, 0}).has_value()) {
            ended.push_back(id);
        }
    }
    return ended;
}

std::optional<std::string> SessionRegistry::find_obstacle(const ManagedSession& session) const {
    if (auto own = session.find_obstacle()) {
        return own;
    }
    for (const SessionListener* listener : listeners_) {
        if (auto found = listener->find_obstacle(session)) {
            return found;
        }
    }
    return std::nullopt;
}

std::size_t SessionRegistry::passed_bytes() const {
    SharedParts shared;
    std::size_t bytes = 0;
    for (const SessionEntry& entry : entries()) {
        bytes += entry.session->passed_bytes(shared);
    }
    return bytes + shared.passed_bytes();
}

std::optional<std::string> SessionRegistry::find_work(
    const ManagedSession& session, bool runs_pass) const {
    if (auto own = session.find_work(runs_pass)) {
        return own;
    }
    for (const SessionListener* listener : listeners_) {
        if (auto found = listener->find_work(session)) {
            return found;
        }
    }
    return std::nullopt;
}

void SessionRegistry::close(SessionEntry entry, Death reason) {
    const auto session = entry.session;
    session->end_conversation(reason);
    for (SessionListener* listener : listeners_) {
        listener->on_session_closed(session->id());
    }
    let_go_(std::move(entry), reason);
}

void SessionRegistry::remove_all(Death reason) {
    std::vector<std::shared_ptr<ManagedSession>> all;
    for (const SessionEntry& entry : entries_) {
        all.push_back(entry.session);
    }
    for (const auto& session : all) {
        session->end_conversation(reason);
    }
    // All die at once, so that to reap them takes the time of one and not of each.
    for (const auto& session : all) {
        session->kill_inside();
    }
    while (!entries_.empty()) {
        SessionEntry entry = std::move(entries_.back());
        entries_.pop_back();
        close(std::move(entry), reason);
    }
}

}  // namespace cellkeep::session
