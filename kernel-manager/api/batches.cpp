// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/batches.hpp"

#include "protocol/support/syscall.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::api {

namespace {

constexpr std::size_t kBatchIdBytes = 12;

}  // namespace

Result<std::shared_ptr<BatchRun>> Batches::begin(
    const boost::asio::any_io_executor& executor,
    const std::string& owner,
    BatchRun::Start start,
    BatchOrder order) {
    forget_old(owner);
    const auto running = std::count_if(batches_.begin(), batches_.end(), [&](const auto& one) {
        return one->owner() == owner && !one->is_finished();
    });
    if (static_cast<std::size_t>(running) >= kBatchesRunningMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "batch: " + std::to_string(kBatchesRunningMax) + " batches run already",
            "Wait for one of them, or delete it.");
    }
    BOOST_OUTCOME_TRY(const std::string digits, random_hex(kBatchIdBytes));
    auto batch = std::make_shared<BatchRun>(
        executor,
        backend_,
        BatchRun::Identity{"bat_" + digits, owner},
        std::move(start),
        std::move(order));
    batches_.push_back(batch);
    batch->begin();
    return batch;
}

std::shared_ptr<BatchRun> Batches::find(const std::string& id) {
    const auto found = std::find_if(
        batches_.begin(), batches_.end(), [&id](const auto& one) { return one->id() == id; });
    return found == batches_.end() ? nullptr : *found;
}

void Batches::forget(const std::string& id) {
    std::erase_if(batches_, [&id](const auto& one) { return one->id() == id; });
}

std::vector<std::string> Batches::running() const {
    std::vector<std::string> ids;
    for (const auto& batch : batches_) {
        if (!batch->is_finished()) {
            ids.push_back(batch->id());
        }
    }
    return ids;
}

/// Those that have finished long ago, and the oldest of this principal.
void Batches::forget_old(const std::string& owner) {
    const auto now = BatchRun::Clock::now();
    std::erase_if(batches_, [&](const auto& one) {
        return one->finished_at() && *one->finished_at() + kBatchesKeptFor < now;
    });
    const auto is_finished = [&owner](const auto& one) {
        return one->owner() == owner && one->is_finished();
    };
    auto kept =
        static_cast<std::size_t>(std::count_if(batches_.begin(), batches_.end(), is_finished));
    while (kept >= kBatchesKeptMax) {
        batches_.erase(std::find_if(batches_.begin(), batches_.end(), is_finished));
        --kept;
    }
}

}  // namespace cellkeep::api
