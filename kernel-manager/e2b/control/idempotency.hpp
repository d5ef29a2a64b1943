// SPDX-License-Identifier: Apache-2.0
//
// What became of requests that a client may send again (the header Idempotency-Key): the same key
// of the same principal gives the sandbox that it gave before. Bounded: the oldest key is forgotten
// for the next. Not thread-safe.
#pragma once

#include "kernel-manager/e2b/limits.hpp"

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cellkeep::e2b {

class Idempotency {
 public:
    explicit Idempotency(std::size_t keys_max = kIdempotencyKeysMax) : keys_max_(keys_max) {}

    struct Known {
        std::string request;     // a digest of its body
        std::string session_id;  // empty: it is still being made
    };
    /// Null: the key is new.
    const Known* find(const std::string& key) const;
    void begin(const std::string& key, std::string request);
    /// It has made this session.
    void finish(const std::string& key, std::string session_id);
    /// It has made none: the key is new again.
    void forget(const std::string& key);

    /// For another program in the server's process, oldest first: those that have made a session.
    using Passed = std::vector<std::pair<std::string, Known>>;
    Passed pass_on() const;
    /// Of the program before, instead of what is here.
    void go_on(const Passed& passed);

    /// 1 to 255 of a to z, 0 to 9 and "-".
    static bool is_key(std::string_view text);

 private:
    std::size_t keys_max_;
    std::map<std::string, Known> known_;
    std::deque<std::string> order_;  // oldest first
};

}  // namespace cellkeep::e2b
