// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/control/snapshot_order.hpp"

#include "kernel-manager/e2b/control/sandbox_order.hpp"
#include "kernel-manager/e2b/limits.hpp"
#include "kernel-manager/e2b/wire/fields.hpp"
#include "kernel-manager/e2b/wire/sandbox_place.hpp"
#include "protocol/limits.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>

namespace cellkeep::e2b {

namespace {

/// Without a value: it is no number of a page.
std::optional<std::size_t> parse_page_size(std::string_view text) {
    std::size_t size = 0;
    const char* end = text.data() + text.size();
    const auto [stop, failed] = std::from_chars(text.data(), end, size);
    const bool good = failed == std::errc() && stop == end && size > 0 && size <= kPageSandboxesMax;
    return good ? std::optional(size) : std::nullopt;
}

}  // namespace

Result<SnapshotOrder> parse_snapshot_order(const nlohmann::json& body) {
    Fields fields(body);
    SnapshotOrder order;
    order.name = fields.text("name", limits::kCheckpointLabelBytesMax);
    const bool with_memory = fields.boolean("memory").value_or(true);
    if (!fields.good()) {
        return fields.error();
    }
    if (!with_memory) {
        return Error(
            ErrorCode::kUnavailable,
            "This server makes a snapshot with its memory: leave out \"memory\".");
    }
    if (order.name && (order.name->empty() || order.name->find(':') != std::string::npos)) {
        fields.fail("name", "must not be empty and must not have a tag");
        return fields.error();
    }
    return order;
}

Result<ForkOrder> parse_fork_order(
    const nlohmann::json& body, const session::LimitCeilings& ceilings) {
    Fields fields(body);
    const auto count = fields.integer("count", 1, kForksMax);
    if (!fields.good()) {
        return fields.error();
    }
    BOOST_OUTCOME_TRY(const auto timeout, parse_timeout(body, ceilings));
    ForkOrder order;
    order.count = static_cast<std::size_t>(count.value_or(1));
    order.timeout = timeout.value_or(kTimeoutDefault);
    return order;
}

Result<SnapshotPage> take_snapshot_page(
    const http::Target& target, const std::vector<Snapshot>& snapshots) {
    const auto limit_text = target.find_query("limit");
    const auto limit = limit_text ? parse_page_size(*limit_text) : std::optional(kPageSandboxesMax);
    if (!limit) {
        return Error(
            ErrorCode::kInvalidArgument,
            "\"limit\" must be a number from 1 to " + std::to_string(kPageSandboxesMax) + ".");
    }
    const std::string after = target.find_query("nextToken").value_or("");
    const auto sandbox = target.find_query("sandboxID");
    auto name = target.find_query("name");
    if (name) {
        name->erase(std::min(name->find(':'), name->size()));  // its tag
    }
    auto at = snapshots.begin();
    if (!after.empty()) {
        at = std::find_if(
            at, snapshots.end(), [&after](const Snapshot& one) { return one.id == after; });
        if (at == snapshots.end()) {
            return Error(
                ErrorCode::kInvalidArgument,
                "\"nextToken\" must be the X-Next-Token of a page, whose last snapshot is still "
                "there.");
        }
        ++at;
    }
    SnapshotPage page;
    std::string last;
    for (; at != snapshots.end(); ++at) {
        const bool wanted = (!sandbox || session_id_of(*sandbox) == at->session_id) &&
                            (!name || name == at->name || name == at->id);
        if (!wanted) {
            continue;
        }
        if (page.snapshots.size() == *limit) {
            page.next = last;
            break;
        }
        page.snapshots.push_back(to_json(*at));
        last = at->id;
    }
    return page;
}

nlohmann::json to_json(const Snapshot& snapshot) {
    nlohmann::json names = nlohmann::json::array();
    if (snapshot.name) {
        names.push_back(*snapshot.name);
    }
    return {{"snapshotID", snapshot.id}, {"names", std::move(names)}};
}

}  // namespace cellkeep::e2b
