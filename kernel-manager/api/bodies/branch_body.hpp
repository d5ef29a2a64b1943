// SPDX-License-Identifier: Apache-2.0
//
// The body of a request for branches. Pure.
#pragma once

#include "kernel-manager/api/bodies/object_reader.hpp"
#include "kernel-manager/checkpoint/checkpoint.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::api {

/// Branches that one request makes.
inline constexpr std::size_t kBranchesAtOnceMax = 100;

struct BranchesOrder {
    std::optional<std::string> from;  // a checkpoint; nullopt: now
    std::size_t count = 1;
    std::vector<std::string> labels;  // of the first ones, at most count
    bool reseed = true;
    checkpoint::OnThreads on_threads = checkpoint::OnThreads::kCarry;  // without from
};

/// A state of a session that something goes on from.
struct StateOrder {
    std::string session;
    std::optional<std::string> checkpoint;  // nullopt: now
    bool reseed = true;
    checkpoint::OnThreads on_threads = checkpoint::OnThreads::kCarry;  // without checkpoint
};
/// The field "from" of a body that names a session, too. nullopt: there is none.
std::optional<StateOrder> read_state(ObjectReader& parent, FieldErrors& errors);

/// The fields "from" and "on_threads", which says what becomes of threads if there is no "from".
void read_start(
    ObjectReader& reader, std::optional<std::string>& from, checkpoint::OnThreads& on_threads);

/// Fills errors; the value counts only if there are none.
BranchesOrder parse_branches_order(const nlohmann::json& body, FieldErrors& errors);

}  // namespace cellkeep::api
