// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/router.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::http {

namespace {

using Captures = std::map<std::string, std::string, std::less<>>;

std::vector<std::string> split(std::string_view pattern) {
    std::vector<std::string> parts;
    while (!pattern.empty()) {
        pattern.remove_prefix(1);
        const std::size_t slash = pattern.find('/');
        const std::string_view part = pattern.substr(0, slash);
        const bool slash_at_end = slash == std::string_view::npos && !parts.empty();
        if (!part.empty() || slash_at_end) {
            parts.emplace_back(part);
        }
        pattern = slash == std::string_view::npos ? std::string_view() : pattern.substr(slash);
    }
    return parts;
}

std::string join(const std::vector<std::string>& segments, std::size_t from) {
    std::string joined;
    for (std::size_t i = from; i < segments.size(); ++i) {
        if (i > from) {
            joined.push_back('/');
        }
        joined += segments[i];
    }
    return joined;
}

bool takes_rest(std::string_view part) {
    return part.size() > 5 && part.starts_with('{') && part.ends_with("...}");
}

bool ends_in_rest(const std::vector<std::string>& pattern) {
    return !pattern.empty() && takes_rest(pattern.back());
}

/// Copies nothing: a request is compared with every pattern.
bool matches(
    const std::vector<std::string>& pattern, bool rest, const std::vector<std::string>& segments) {
    if (rest ? segments.size() < pattern.size() : segments.size() != pattern.size()) {
        return false;
    }
    const std::size_t single = pattern.size() - (rest ? 1 : 0);
    for (std::size_t i = 0; i < single; ++i) {
        const std::string& part = pattern[i];
        if (part.starts_with('{') ? segments[i].empty() : part != segments[i]) {
            return false;
        }
    }
    // Slashes join what is left: it is empty only if that is one empty segment.
    return !rest || segments.size() > pattern.size() || !segments.back().empty();
}

/// Of a pattern that matches.
Captures capture(
    const std::vector<std::string>& pattern, const std::vector<std::string>& segments) {
    Captures captures;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        const std::string& part = pattern[i];
        if (takes_rest(part)) {
            captures.emplace(part.substr(1, part.size() - 5), join(segments, i));
        } else if (part.starts_with('{')) {
            captures.emplace(part.substr(1, part.size() - 2), segments[i]);
        }
    }
    return captures;
}

}  // namespace

void Router::add(Route route) {
    CELLKEEP_CHECK(route.method == "GET" || route.access == Access::kChange);
    std::vector<std::string> pattern = split(route.pattern);
    const bool rest = ends_in_rest(pattern);
    entries_.push_back({std::move(route), std::move(pattern), rest});
}

std::vector<const Route*> Router::routes() const {
    std::vector<const Route*> all;
    all.reserve(entries_.size());
    for (const Entry& entry : entries_) {
        all.push_back(&entry.route);
    }
    return all;
}

Router::Match Router::match(
    std::string_view method, const std::vector<std::string>& segments) const {
    Match match = match_entries(method, segments, false);
    return match.allowed.empty() ? match_entries(method, segments, true) : match;
}

Router::Match Router::match_entries(
    std::string_view method, const std::vector<std::string>& segments, bool rest) const {
    Match match;
    const std::string_view wanted = method == "HEAD" ? std::string_view("GET") : method;
    for (const Entry& entry : entries_) {
        if (entry.rest != rest || !matches(entry.pattern, rest, segments)) {
            continue;
        }
        if (std::find(match.allowed.begin(), match.allowed.end(), entry.route.method) ==
            match.allowed.end()) {
            match.allowed.push_back(entry.route.method);
        }
        if (match.route == nullptr && entry.route.method == wanted) {
            match.route = &entry.route;
            match.captures = capture(entry.pattern, segments);
        }
    }
    return match;
}

std::string allow_value(const std::vector<std::string>& methods) {
    std::string value;
    for (const std::string& method : methods) {
        value += method + ", ";
        if (method == "GET") {
            value += "HEAD, ";
        }
    }
    return value + "OPTIONS";
}

}  // namespace cellkeep::http
