// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/answers/session_page.hpp"

#include "protocol/json.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <string_view>
#include <tuple>
#include <utility>

namespace cellkeep::api {

namespace {

using session::KernelState;
using session::SessionInfo;

constexpr std::string_view kMetadataPrefix = "metadata.";
constexpr std::array kStates = {
    KernelState::kStarting,
    KernelState::kIdle,
    KernelState::kBusy,
    KernelState::kRestarting,
    KernelState::kDead};

/// Digits only, to the end.
template <typename T>
std::optional<T> parse_number(std::string_view text) {
    T value{};
    const char* end = text.data() + text.size();
    const auto [stop, failed] = std::from_chars(text.data(), end, value);
    if (failed != std::errc() || stop != end || text.front() == '-') {
        return std::nullopt;
    }
    return value;
}

std::int64_t created_us(const SessionInfo& info) {
    return std::chrono::duration_cast<std::chrono::microseconds>(info.created_at.time_since_epoch())
        .count();
}

std::string make_cursor(const SessionInfo& info) {
    return std::to_string(created_us(info)) + "-" + info.id;
}

std::optional<PageQuery::Place> parse_cursor(std::string_view text) {
    const std::size_t dash = text.find('-');
    if (dash == 0 || dash == std::string_view::npos || dash + 1 == text.size()) {
        return std::nullopt;
    }
    const auto created = parse_number<std::int64_t>(text.substr(0, dash));
    if (!created) {
        return std::nullopt;
    }
    return PageQuery::Place{*created, std::string(text.substr(dash + 1))};
}

/// A member of the metadata as the query spells it: text as it is, everything else as JSON.
bool has_metadata(const SessionInfo& info, const std::string& key, const std::string& wanted) {
    const auto found = info.metadata.find(key);
    if (found == info.metadata.end()) {
        return false;
    }
    return found->is_string() ? found->get_ref<const std::string&>() == wanted
                              : protocol::dump_json(*found) == wanted;
}

bool matches(const SessionInfo& info, const PageQuery& query) {
    return (!query.state || info.state == *query.state) &&
           std::all_of(query.metadata.begin(), query.metadata.end(), [&info](const auto& one) {
               return has_metadata(info, one.first, one.second);
           });
}

}  // namespace

std::optional<http::Problem> parse_page_query(const http::Target& target, PageQuery& query) {
    for (const auto& [name, value] : target.query) {
        if (name == "limit") {
            const auto limit = value.empty() ? std::nullopt : parse_number<std::size_t>(value);
            if (!limit || *limit < 1 || *limit > kPageSessionsMax) {
                return http::make_problem(
                    400,
                    "limit must be a number from 1 to " + std::to_string(kPageSessionsMax) + ".");
            }
            query.limit = *limit;
        } else if (name == "after") {
            query.after = parse_cursor(value);
            if (!query.after) {
                return http::make_problem(
                    400,
                    "unknown-cursor",
                    "The page cannot be found",
                    "\"after\" is not what a page before this one gave as \"next\"; list from the "
                    "start.");
            }
        } else if (name == "state") {
            const auto state =
                std::find_if(kStates.begin(), kStates.end(), [&wanted = value](KernelState one) {
                    return to_string(one) == wanted;
                });
            if (state == kStates.end()) {
                return http::make_problem(
                    400, "state must be starting, idle, busy, restarting or dead.");
            }
            query.state = *state;
        } else if (name.starts_with(kMetadataPrefix)) {
            query.metadata.emplace_back(name.substr(kMetadataPrefix.size()), value);
        }
    }
    return std::nullopt;
}

SessionPage take_page(std::vector<SessionInfo> all, const PageQuery& query) {
    const auto place = [](const SessionInfo& info) {
        return std::tuple(created_us(info), info.id);
    };
    std::sort(all.begin(), all.end(), [&place](const SessionInfo& a, const SessionInfo& b) {
        return place(a) < place(b);
    });
    SessionPage page;
    for (SessionInfo& info : all) {
        const bool seen =
            query.after && place(info) <= std::tuple(query.after->created_us, query.after->id);
        if (seen || !matches(info, query)) {
            continue;
        }
        if (page.sessions.size() == query.limit) {
            page.next = make_cursor(page.sessions.back());
            break;
        }
        page.sessions.push_back(std::move(info));
    }
    return page;
}

std::string next_link(const http::Target& target, const std::string& cursor) {
    std::string link = "<" + target.path + "?after=" + http::encode_segment(cursor);
    for (const auto& [name, value] : target.query) {
        if (name != "after" && name != "token") {
            link += "&" + http::encode_segment(name) + "=" + http::encode_segment(value);
        }
    }
    return link + ">; rel=\"next\"";
}

}  // namespace cellkeep::api
