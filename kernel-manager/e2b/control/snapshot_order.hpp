// SPDX-License-Identifier: Apache-2.0
//
// What E2B's clients ask for when they make snapshots and forks of a sandbox, and list them. Pure.
#pragma once

#include "kernel-manager/e2b/control/snapshot_book.hpp"
#include "kernel-manager/http/message/target.hpp"
#include "kernel-manager/limits/limits.hpp"
#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::e2b {

struct SnapshotOrder {
    std::optional<std::string> name;  // neither empty nor one with a colon
};
/// kInvalidArgument; kUnavailable: without the memory, which this server does not do.
Result<SnapshotOrder> parse_snapshot_order(const nlohmann::json& body);

struct ForkOrder {
    std::size_t count = 1;
    std::chrono::seconds timeout{0};
};
/// kInvalidArgument.
Result<ForkOrder> parse_fork_order(
    const nlohmann::json& body, const session::LimitCeilings& ceilings);

struct SnapshotPage {
    nlohmann::json snapshots = nlohmann::json::array();
    std::string next;  // empty: there are no more
};
/// Those of the query's page: of one sandbox or name, or all. kInvalidArgument.
Result<SnapshotPage> take_snapshot_page(
    const http::Target& target, const std::vector<Snapshot>& snapshots);

nlohmann::json to_json(const Snapshot& snapshot);

}  // namespace cellkeep::e2b
