// SPDX-License-Identifier: Apache-2.0
//
// The body of a batch: code that is tried many times from one state, each time in a session of its
// own. Pure.
#pragma once

#include "kernel-manager/api/bodies/branch_body.hpp"
#include "kernel-manager/api/bodies/object_reader.hpp"
#include "kernel-manager/api/bodies/request_body.hpp"
#include "kernel-manager/execution/execution.hpp"
#include "kernel-manager/session/session_options.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::api {

inline constexpr std::size_t kBatchItemsMax = 1000;
/// Items of one batch that run at a time, at most and unless it says otherwise.
inline constexpr std::size_t kBatchConcurrencyMax = 32;
inline constexpr std::size_t kBatchConcurrencyDefault = 4;

struct BatchItem {
    session::ExecutionRequest request;
    bool has_code = true;                    // false: BatchOrder::code
    std::map<std::string, std::string> env;  // besides the session's; only of fresh ones
    std::optional<std::string> label;
};

struct BatchOrder {
    enum class StopOn { kNever, kFirstSuccess, kFirstError };
    /// Which sessions stay: none, that of the first item that succeeded, or all that ran.
    enum class Keep { kNone, kWinner, kAll };

    std::optional<StateOrder> from;   // nullopt: fresh sessions
    session::SessionOptions options;  // of fresh ones
    std::string code;                 // of items that have none
    std::vector<BatchItem> items;     // at least one
    std::size_t concurrency = kBatchConcurrencyDefault;
    StopOn stop_on = StopOn::kNever;
    Keep keep = Keep::kNone;
    /// Of all runs together; nullopt: each has its own limit only.
    std::optional<std::chrono::milliseconds> wall_budget;
    bool interrupt_on_disconnect = false;
};

/// Fills errors; the value counts only if there are none.
BatchOrder parse_batch_order(const nlohmann::json& body, const Offer& offer, FieldErrors& errors);

}  // namespace cellkeep::api
