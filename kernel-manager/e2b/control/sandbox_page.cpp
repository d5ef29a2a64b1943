// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/control/sandbox_page.hpp"

#include "kernel-manager/e2b/limits.hpp"
#include "kernel-manager/e2b/wire/sandbox_place.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace cellkeep::e2b {

namespace {

/// A value that was percent-encoded once more than the query itself is.
Result<std::string> decode_again(const std::string& text) {
    BOOST_OUTCOME_TRY(const auto target, http::parse_target("/?value=" + text));
    return target.find_query("value").value_or("");
}

/// The clients encode each name and value, then all of it as a query, then that as a value.
Result<std::map<std::string, std::string>> parse_metadata(const std::string& text) {
    std::map<std::string, std::string> metadata;
    BOOST_OUTCOME_TRY(const auto target, http::parse_target("/?" + text));
    for (const auto& [name, value] : target.query) {
        BOOST_OUTCOME_TRY(auto key, decode_again(name));
        BOOST_OUTCOME_TRY(auto wanted, decode_again(value));
        metadata.insert_or_assign(std::move(key), std::move(wanted));
    }
    return metadata;
}

Error bad_query(const std::string& what) {
    return {ErrorCode::kInvalidArgument, what};
}

Status parse_states(const std::string& text, PageQuery& query) {
    query.running = text.find("running") != std::string::npos;
    query.paused = text.find("paused") != std::string::npos;
    for (const char* known : {"", "running", "paused", "running,paused", "paused,running"}) {
        if (text == known) {
            query.running = query.running || text.empty();
            query.paused = query.paused || text.empty();
            return ok();
        }
    }
    return bad_query("\"state\" must be \"running\", \"paused\" or both, with a comma.");
}

Result<std::size_t> parse_limit(const std::string& text) {
    std::size_t limit = 0;
    const char* end = text.data() + text.size();
    const auto [stop, failed] = std::from_chars(text.data(), end, limit);
    if (failed != std::errc() || stop != end || limit == 0 || limit > kPageSandboxesMax) {
        return bad_query(
            "\"limit\" must be a number from 1 to " + std::to_string(kPageSandboxesMax) + ".");
    }
    return limit;
}

/// Place of a sandbox in a list: creation, then id.
bool is_older(const ListedSandbox& left, const ListedSandbox& right) {
    return std::pair(left.info.created_at, left.info.id) <
           std::pair(right.info.created_at, right.info.id);
}

/// "MICROSECONDS-ID"
std::string token_of(const ListedSandbox& sandbox) {
    const auto time = std::chrono::duration_cast<std::chrono::microseconds>(
        sandbox.info.created_at.time_since_epoch());
    return std::to_string(time.count()) + "-" + sandbox.info.id;
}

Result<ListedSandbox> place_of(const std::string& token) {
    std::int64_t time = 0;
    const std::size_t dash = std::min(token.find('-'), token.size());
    const char* end = token.data() + dash;
    const auto [stop, failed] = std::from_chars(token.data(), end, time);
    if (failed != std::errc() || stop != end || dash == token.size() ||
        !session_id_of(token.substr(dash + 1))) {
        return bad_query("\"nextToken\" must be the X-Next-Token of a page.");
    }
    ListedSandbox place;
    place.info.created_at = std::chrono::system_clock::time_point(std::chrono::microseconds(time));
    place.info.id = token.substr(dash + 1);
    return place;
}

}  // namespace

Result<PageQuery> parse_page_query(const http::Target& target) {
    PageQuery query;
    query.limit = kPageSandboxesMax;
    if (const auto text = target.find_query("metadata"); text && !text->empty()) {
        BOOST_OUTCOME_TRY(query.metadata, parse_metadata(*text));
    }
    BOOST_OUTCOME_TRY(parse_states(target.find_query("state").value_or(""), query));
    if (const auto text = target.find_query("limit")) {
        BOOST_OUTCOME_TRY(query.limit, parse_limit(*text));
    }
    query.template_id = target.find_query("template").value_or("");
    const std::string order = target.find_query("order").value_or("desc");
    if (order != "asc" && order != "desc") {
        return bad_query("\"order\" must be \"asc\" or \"desc\".");
    }
    query.oldest_first = order == "asc";
    query.after = target.find_query("nextToken").value_or("");
    if (!query.after.empty()) {
        BOOST_OUTCOME_TRY(place_of(query.after));
    }
    return query;
}

bool matches(const PageQuery& query, const ListedSandbox& sandbox) {
    const auto& metadata = sandbox.info.metadata;
    const bool labelled =
        std::all_of(query.metadata.begin(), query.metadata.end(), [&](const auto& wanted) {
            const auto found = metadata.find(wanted.first);
            return found != metadata.end() && *found == wanted.second;
        });
    const bool in_state = sandbox.state == State::kPaused ? query.paused : query.running;
    return labelled && in_state &&
           (query.template_id.empty() || query.template_id == sandbox.record.template_id);
}

Page take_page(const PageQuery& query, std::vector<ListedSandbox> sandboxes) {
    std::sort(sandboxes.begin(), sandboxes.end(), is_older);
    if (!query.oldest_first) {
        std::reverse(sandboxes.begin(), sandboxes.end());
    }
    auto first = sandboxes.begin();
    if (!query.after.empty()) {
        const auto place = place_of(query.after);
        first = std::find_if(first, sandboxes.end(), [&](const ListedSandbox& one) {
            return place.has_value() && (query.oldest_first ? is_older(place.value(), one)
                                                            : is_older(one, place.value()));
        });
    }
    sandboxes.erase(sandboxes.begin(), first);
    Page page;
    if (sandboxes.size() > query.limit) {
        sandboxes.resize(query.limit);
        page.next = token_of(sandboxes.back());
    }
    page.sandboxes = std::move(sandboxes);
    return page;
}

}  // namespace cellkeep::e2b
