// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/control/idempotency.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::e2b {

const Idempotency::Known* Idempotency::find(const std::string& key) const {
    const auto found = known_.find(key);
    return found == known_.end() ? nullptr : &found->second;
}

void Idempotency::begin(const std::string& key, std::string request) {
    if (order_.size() >= keys_max_) {
        known_.erase(order_.front());
        order_.pop_front();
    }
    known_.insert_or_assign(key, Known{std::move(request), {}});
    order_.push_back(key);
}

void Idempotency::finish(const std::string& key, std::string session_id) {
    if (const auto found = known_.find(key); found != known_.end()) {
        found->second.session_id = std::move(session_id);
    }
}

void Idempotency::forget(const std::string& key) {
    known_.erase(key);
    std::erase(order_, key);
}

Idempotency::Passed Idempotency::pass_on() const {
    Passed passed;
    for (const std::string& key : order_) {
        const auto found = known_.find(key);
        if (found != known_.end() && !found->second.session_id.empty()) {
            passed.emplace_back(*found);
        }
    }
    return passed;
}

void Idempotency::go_on(const Passed& passed) {
    known_.clear();
    order_.clear();
    for (const auto& [key, known] : passed) {
        begin(key, known.request);
        finish(key, known.session_id);
    }
}

bool Idempotency::is_key(std::string_view text) {
    return !text.empty() && text.size() <= kIdempotencyKeyBytesMax &&
           std::all_of(text.begin(), text.end(), [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
           });
}

}  // namespace cellkeep::e2b
