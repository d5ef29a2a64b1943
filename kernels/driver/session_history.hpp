// SPDX-License-Identifier: Apache-2.0
//
// What was executed in this kernel's life, for history requests of languages that keep none of
// their own (Jupyter messaging 5.5, "History"). In memory, bounded: the oldest entries go first.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <deque>
#include <optional>
#include <string>

namespace cellkeep::kernels::driver {

inline constexpr std::size_t kHistoryEntriesMax = 10'000;
inline constexpr std::size_t kHistoryBytesMax = 8UL << 20U;

class SessionHistory {
 public:
    void add(int count, std::string code);
    /// The text of the result of the last one added.
    void set_output(std::string text);

    /// Content of a history_reply for a complete history_request.
    nlohmann::json answer(const nlohmann::json& request) const;

 private:
    struct Entry {
        int count = 0;
        std::string code;
        std::optional<std::string> output;
    };

    static std::size_t size_of(const Entry& entry);
    void drop_oldest();

    std::deque<Entry> entries_;
    std::size_t bytes_ = 0;
};

/// Whether text is matched by a pattern of "*" and "?" (as SQLite's GLOB, without sets).
bool matches_glob(const std::string& pattern, const std::string& text);

}  // namespace cellkeep::kernels::driver
