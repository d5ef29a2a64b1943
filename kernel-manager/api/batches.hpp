// SPDX-License-Identifier: Apache-2.0
//
// The batches that run, and the finished ones that can still be read. Bounded for each principal,
// so that one's make nothing of another's be refused or forgotten. io_context thread only; what
// runs may not outlive the backend.
#pragma once

#include "kernel-manager/api/batch_run.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace cellkeep::api {

/// Batches of one principal that run at a time, and finished ones that are remembered, for so long.
inline constexpr std::size_t kBatchesRunningMax = 4;
inline constexpr std::size_t kBatchesKeptMax = 8;
inline constexpr std::chrono::minutes kBatchesKeptFor{60};

class Batches {
 public:
    explicit Batches(BatchRun::Backend backend) : backend_(backend) {}

    /// Begins one. kLimitExceeded: the principal has kBatchesRunningMax; kSystem.
    Result<std::shared_ptr<BatchRun>> begin(
        const boost::asio::any_io_executor& executor,
        const std::string& owner,
        BatchRun::Start start,
        BatchOrder order);
    /// Null if it is not remembered.
    std::shared_ptr<BatchRun> find(const std::string& id);
    void forget(const std::string& id);
    /// The ids of those that have not finished.
    std::vector<std::string> running() const;

 private:
    void forget_old(const std::string& owner);

    BatchRun::Backend backend_;
    std::deque<std::shared_ptr<BatchRun>> batches_;  // oldest first
};

}  // namespace cellkeep::api
