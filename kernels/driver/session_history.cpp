// SPDX-License-Identifier: Apache-2.0
#include "kernels/driver/session_history.hpp"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace cellkeep::kernels::driver {

namespace {

using nlohmann::json;

/// There is one session, this one; 0 is how a request calls the current one.
constexpr int kSession = 1;

}  // namespace

std::size_t SessionHistory::size_of(const Entry& entry) {
    return entry.code.size() + entry.output.value_or("").size();
}

void SessionHistory::add(int count, std::string code) {
    entries_.push_back({count, std::move(code), std::nullopt});
    bytes_ += size_of(entries_.back());
    drop_oldest();
}

void SessionHistory::set_output(std::string text) {
    if (entries_.empty()) {
        return;
    }
    bytes_ -= size_of(entries_.back());
    entries_.back().output = std::move(text);
    bytes_ += size_of(entries_.back());
    drop_oldest();
}

void SessionHistory::drop_oldest() {
    while (!entries_.empty() &&
           (entries_.size() > kHistoryEntriesMax || bytes_ > kHistoryBytesMax)) {
        bytes_ -= size_of(entries_.front());
        entries_.pop_front();
    }
}

json SessionHistory::answer(const json& request) const {
    std::vector<const Entry*> chosen;
    const std::string kind = request.value("hist_access_type", std::string());
    const auto n = static_cast<std::size_t>(std::max(0, request.value("n", 10)));
    if (kind == "range") {
        const int session = request.value("session", 0);
        const int start = request.value("start", 1);
        const int stop = request.value("stop", 0);
        for (const Entry& entry : entries_) {
            if ((session == 0 || session == kSession) && entry.count >= start &&
                (stop <= 0 || entry.count < stop)) {
                chosen.push_back(&entry);
            }
        }
    } else {
        const bool search = kind == "search";
        const std::string pattern = request.value("pattern", std::string("*"));
        const bool unique = search && request.value("unique", false);
        std::set<std::string> seen;
        for (auto entry = entries_.rbegin(); entry != entries_.rend() && chosen.size() < n;
             ++entry) {
            if ((!search || matches_glob(pattern, entry->code)) &&
                (!unique || seen.insert(entry->code).second)) {
                chosen.push_back(&*entry);
            }
        }
        std::reverse(chosen.begin(), chosen.end());
    }
    const bool with_output = request.value("output", false);
    json history = json::array();
    for (const Entry* entry : chosen) {
        json shown = entry->code;
        if (with_output) {
            shown =
                json::array({entry->code, entry->output ? json(*entry->output) : json(nullptr)});
        }
        history.push_back(json::array({kSession, entry->count, std::move(shown)}));
    }
    return {{"status", "ok"}, {"history", std::move(history)}};
}

bool matches_glob(const std::string& pattern, const std::string& text) {
    std::size_t at = 0;
    std::size_t in = 0;
    std::size_t star = std::string::npos;
    std::size_t resumed = 0;
    while (at < text.size()) {
        if (in < pattern.size() && pattern[in] == '*') {
            star = in++;
            resumed = at;
        } else if (in < pattern.size() && (pattern[in] == '?' || pattern[in] == text[at])) {
            ++in;
            ++at;
        } else if (star != std::string::npos) {
            in = star + 1;  // the last star takes one more character
            at = ++resumed;
        } else {
            return false;
        }
    }
    return std::all_of(
        pattern.begin() + static_cast<std::ptrdiff_t>(in), pattern.end(), [](char c) {
            return c == '*';
        });
}

}  // namespace cellkeep::kernels::driver
