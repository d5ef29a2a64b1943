// SPDX-License-Identifier: Apache-2.0
//
// What a request for a merge, and one for a comparison, say. Pure.
#pragma once

#include "kernel-manager/api/bodies/object_reader.hpp"
#include "kernel-manager/checkpoint/files/manifest.hpp"
#include "kernel-manager/checkpoint/files/merge_plan.hpp"
#include "kernel-manager/http/message/problem.hpp"
#include "kernel-manager/http/message/target.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>

namespace cellkeep::api {

struct MergeRequest {
    std::string from;  // the branch
    checkpoint::MergeOrder order;
};
/// Fills errors; the value counts only if there are none.
MergeRequest parse_merge(const nlohmann::json& body, FieldErrors& errors);

/// ?against=, ?checkpoint=, ?limit= and ?after=
struct ComparisonQuery {
    std::string against;
    std::optional<std::string> later;
    checkpoint::ChangesPage page;
};
/// The problem is a 400 that names what is wrong.
std::optional<http::Problem> parse_comparison(const http::Target& target, ComparisonQuery& query);
/// For ?after=: the place behind that path. Names may have bytes that JSON has not.
std::string make_path_cursor(const std::string& path);

}  // namespace cellkeep::api
