// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/governance/approvals.hpp"

#include "protocol/support/syscall.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::governance {

namespace {

constexpr std::size_t kApprovalIdBytes = 12;

}  // namespace

std::string_view to_string(ApprovalAnswer answer) {
    switch (answer) {
        case ApprovalAnswer::kApproved:
            return "approved";
        case ApprovalAnswer::kDenied:
            return "denied";
        case ApprovalAnswer::kExpired:
            return "expired";
    }
    return "denied";
}

Approvals::Approvals(boost::asio::io_context& io, std::chrono::milliseconds patience)
    : io_(io), patience_(patience) {}

std::size_t Approvals::count_of(const std::string& session_id) const {
    return static_cast<std::size_t>(
        std::count_if(pending_.begin(), pending_.end(), [&](const auto& one) {
            return one.second->pending.request.session_id == session_id;
        }));
}

Result<Approvals::Waiting> Approvals::ask(ApprovalRequest request, Settle on_settled) {
    if (pending_.size() >= kApprovalsMax || count_of(request.session_id) >= kSessionApprovalsMax) {
        return Error(ErrorCode::kLimitExceeded, "too many calls wait for an approval already");
    }
    BOOST_OUTCOME_TRY(const std::string random, random_hex(kApprovalIdBytes));
    const std::string id = "apr_" + random;
    // Its alarm is in it: if the entry is there, so is this object.
    const auto entry =
        std::make_shared<Entry>(io_, [alive = std::weak_ptr(alive_)] { return alive.lock(); });
    entry->pending = {id, std::move(request), Clock::now(), Clock::now() + patience_};
    entry->settle = std::move(on_settled);
    entry->number = ++asked_;
    pending_.emplace(id, entry);
    entry->alarm.set_after(patience_, [this, id] {
        (void)settle(id, ApprovalAnswer::kExpired, "").has_value();  // Ignored: it waits.
    });
    const auto withdraw = [this, id, alive = std::weak_ptr(alive_)](const void* /*the id*/) {
        if (alive.lock()) {
            forget(id);
        }
    };
    return Waiting{id, std::shared_ptr<void>(entry.get(), withdraw)};
}

std::vector<const Approvals::Pending*> Approvals::list() const {
    std::vector<const Entry*> entries;
    entries.reserve(pending_.size());
    for (const auto& [id, entry] : pending_) {
        entries.push_back(entry.get());
    }
    std::sort(entries.begin(), entries.end(), [](const Entry* left, const Entry* right) {
        return left->number < right->number;
    });
    std::vector<const Pending*> pending;
    pending.reserve(entries.size());
    for (const Entry* entry : entries) {
        pending.push_back(&entry->pending);
    }
    return pending;
}

const Approvals::Pending* Approvals::find(const std::string& id) const {
    const auto found = pending_.find(id);
    return found == pending_.end() ? nullptr : &found->second->pending;
}

const std::string* Approvals::find_settled(const std::string& id) const {
    const auto found = settled_.find(id);
    return found == settled_.end() ? nullptr : &found->second;
}

/// For a request that its maker withdraws, too.
void Approvals::forget(const std::string& id) {
    const auto found = pending_.find(id);
    if (found == pending_.end()) {
        return;
    }
    settled_.emplace(id, found->second->pending.request.action.principal);
    settled_order_.push_back(id);
    if (settled_order_.size() > kSettledKnownMax) {
        settled_.erase(settled_order_.front());
        settled_order_.pop_front();
    }
    pending_.erase(found);
}

Status Approvals::settle(const std::string& id, ApprovalAnswer answer, const std::string& by) {
    const auto found = pending_.find(id);
    if (found == pending_.end()) {
        return Error(ErrorCode::kNotFound, "no such approval waits");
    }
    const std::shared_ptr<Entry> entry = found->second;  // its alarm may be what calls this
    forget(id);
    entry->alarm.cancel();
    entry->settle(answer, by);
    return ok();
}

}  // namespace cellkeep::governance
