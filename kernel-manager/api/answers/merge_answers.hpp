// SPDX-License-Identifier: Apache-2.0
//
// Comparisons and merges of files as the session API shows them. Pure.
#pragma once

#include "kernel-manager/checkpoint/files/file_merge.hpp"
#include "kernel-manager/checkpoint/files/manifest.hpp"
#include "kernel-manager/http/message/response.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace cellkeep::api {

/// The members "files", "complete" and "next".
nlohmann::json to_json(const checkpoint::FileChanges& changes);

/// 200, or the 409 that says why not, and what is left of it. from: the branch.
http::Response answer_merge(const checkpoint::MergeAnswer& answer, const std::string& from);

}  // namespace cellkeep::api
