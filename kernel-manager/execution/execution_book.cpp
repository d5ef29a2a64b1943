// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/execution_book.hpp"

#include "protocol/limits.hpp"
#include "protocol/sha256.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::session {

std::string digest_of(const ExecutionRequest& request) {
    protocol::Sha256 digest;
    digest.update_field(request.code);
    digest.update_field(request.language);
    digest.update_field(request.stdin_text);
    digest.update_field(request.timeout ? std::to_string(request.timeout->count()) : "");
    digest.update_field(request.store_history ? "1" : "0");
    for (const InputFile& file : request.files) {
        digest.update_field(file.path);
        digest.update_field(file.bytes);
        digest.update_field(file.from);
        digest.update_field(file.sha256);
    }
    return digest.finish();
}

Error forgotten_answer(const std::string& execution_id) {
    return Error::in_field(
        ErrorCode::kNotFound,
        "idempotency_key",
        "its request has run as execution " + execution_id + ", whose answer is no longer kept",
        "Choose a new key to run it again.");
}

Result<ExecutionBook::Entry> ExecutionBook::find_key(
    const std::string& key, const std::string& digest) const {
    const auto seen = key.empty() ? keys_.end() : keys_.find(key);
    if (seen == keys_.end()) {
        return Entry();
    }
    if (seen->second.digest != digest) {
        return Error::in_field(
            ErrorCode::kInvalidArgument,
            "idempotency_key",
            "it came before with another request, execution " + seen->second.id,
            "Choose a new key for a new request.");
    }
    if (!seen->second.execution) {
        return forgotten_answer(seen->second.id);
    }
    return seen->second.execution;
}

void ExecutionBook::add(const Entry& execution, const std::string& key, std::string digest) {
    entries_.push_back(execution);
    if (key.empty()) {
        return;
    }
    keys_.insert_or_assign(key, Keyed{execution, execution->id(), std::move(digest)});
    keys_by_age_.push_back(key);
    if (keys_by_age_.size() > limits::kIdempotencyKeysMax) {
        keys_.erase(keys_by_age_.front());
        keys_by_age_.pop_front();
    }
}

void ExecutionBook::settle() {
    std::size_t finished = 0;
    std::uint64_t bytes = 0;
    std::uint64_t event_bytes = 0;
    // The newest first: what does not fit behind them goes.
    for (auto at = entries_.rbegin(); at != entries_.rend(); ++at) {
        const Entry& execution = *at;
        if (execution->phase() != ExecutionPhase::kFinished) {
            continue;
        }
        ++finished;
        bytes += execution->result()->retained_bytes;
        event_bytes += execution->events().bytes();
        if (event_bytes > limits::kExecutionJournalsBytesMax) {
            execution->forget_events();
        }
        const bool fits =
            finished <= limits::kExecutionHistoryMax && bytes <= limits::kExecutionHistoryBytesMax;
        if (fits || finished == 1) {
            continue;
        }
        // Everything finished from here to the oldest.
        const auto oldest_kept = at.base();
        const auto gone = [&](const Entry& one) {
            return one->phase() == ExecutionPhase::kFinished;
        };
        for (auto& [key, keyed] : keys_) {
            if (keyed.execution && gone(keyed.execution) &&
                std::find(entries_.begin(), oldest_kept, keyed.execution) != oldest_kept) {
                keyed.execution = nullptr;
            }
        }
        entries_.erase(std::remove_if(entries_.begin(), oldest_kept, gone), oldest_kept);
        return;
    }
}

ExecutionBook::Entry ExecutionBook::find(const std::string& id) const {
    const auto found = std::find_if(
        entries_.begin(), entries_.end(), [&](const Entry& one) { return one->id() == id; });
    return found == entries_.end() ? nullptr : *found;
}

}  // namespace cellkeep::session
