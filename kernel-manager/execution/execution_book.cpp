// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/execution_book.hpp"

#include "protocol/json.hpp"
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
    for (const LentTool& tool : request.tools) {
        digest.update_field(tool.name);
        digest.update_field(tool.description);
        digest.update_field(protocol::dump_json(tool.input_schema));
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
    entries_.push_back(Kept{execution});
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
    count_finished();
    // The newest always stays.
    while (finished_ > 1 && (finished_ > limits::kExecutionHistoryMax ||
                             bytes_ > limits::kExecutionHistoryBytesMax)) {
        forget_oldest();
    }
    for (Kept& one : entries_) {
        if (event_bytes_ <= limits::kExecutionJournalsBytesMax) {
            return;
        }
        if (one.counted && one.execution->events().size() > 1) {
            one.execution->forget_events();
            event_bytes_ -= one.event_bytes;
            one.event_bytes = one.execution->events().bytes();
            event_bytes_ += one.event_bytes;
        }
    }
}

/// Those that wait or run are few and the newest: what finished long ago is not looked at.
void ExecutionBook::count_finished() {
    std::size_t left = entries_.size() - finished_;
    for (auto at = entries_.rbegin(); left > 0 && at != entries_.rend(); ++at) {
        if (at->counted) {
            continue;
        }
        --left;
        if (at->execution->phase() != ExecutionPhase::kFinished) {
            continue;
        }
        at->counted = true;
        at->bytes = at->execution->result()->retained_bytes;
        at->event_bytes = at->execution->events().bytes();
        ++finished_;
        bytes_ += at->bytes;
        event_bytes_ += at->event_bytes;
    }
}

/// Precondition: one has been counted.
void ExecutionBook::forget_oldest() {
    const auto oldest =
        std::find_if(entries_.begin(), entries_.end(), [](const Kept& one) { return one.counted; });
    --finished_;
    bytes_ -= oldest->bytes;
    event_bytes_ -= oldest->event_bytes;
    for (auto& [key, keyed] : keys_) {
        if (keyed.execution == oldest->execution) {
            keyed.execution = nullptr;
        }
    }
    entries_.erase(oldest);
}

std::vector<ExecutionBook::PassedKey> ExecutionBook::keys() const {
    std::vector<PassedKey> passed;
    for (const std::string& key : keys_by_age_) {
        if (const auto found = keys_.find(key); found != keys_.end()) {
            passed.push_back({key, found->second.id, found->second.digest});
        }
    }
    return passed;
}

void ExecutionBook::go_on(const std::vector<Entry>& passed, std::vector<PassedKey> keys) {
    for (const Entry& execution : passed) {
        entries_.push_back(Kept{execution});
    }
    for (PassedKey& one : keys) {
        Entry execution = find(one.id);
        keys_by_age_.push_back(one.key);
        keys_.insert_or_assign(
            std::move(one.key),
            Keyed{std::move(execution), std::move(one.id), std::move(one.digest)});
    }
    settle();
}

ExecutionBook::Entry ExecutionBook::find(const std::string& id) const {
    const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Kept& one) {
        return one.execution->id() == id;
    });
    return found == entries_.end() ? nullptr : found->execution;
}

std::vector<ExecutionBook::Entry> ExecutionBook::list() const {
    std::vector<Entry> listed;
    listed.reserve(entries_.size());
    for (const Kept& one : entries_) {
        listed.push_back(one.execution);
    }
    return listed;
}

}  // namespace cellkeep::session
