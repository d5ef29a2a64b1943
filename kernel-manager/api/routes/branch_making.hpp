// SPDX-License-Identifier: Apache-2.0
//
// The branches that one request asks for. Some are made side by side: while the processes of one go
// to their places, which the kernel takes its time for, the sandbox of the next is made.
#pragma once

#include "kernel-manager/api/bodies/branch_body.hpp"
#include "kernel-manager/service/session_service.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::api {

/// Of one request, on their way at the same time.
inline constexpr std::size_t kBranchesMadeAtOnce = 4;

/// io_context thread only.
class BranchMaking : public std::enable_shared_from_this<BranchMaking> {
 public:
    using Made = Result<std::shared_ptr<session::Session>>;

    /// sessions outlives it. parent: the id of a session.
    BranchMaking(
        boost::asio::any_io_executor executor,
        session::SessionService& sessions,
        std::string parent,
        std::string checkpoint,
        BranchesOrder order);

    /// order.count branches or why there is none, in the order of their labels. Once there is no
    /// room for one, none is begun, because each would only wait for room again: all that were not
    /// begun have that error. Call it once.
    static boost::asio::awaitable<std::vector<Made>> make_all(std::shared_ptr<BranchMaking> self);

 private:
    boost::asio::awaitable<void> work();

    boost::asio::any_io_executor executor_;
    session::SessionService& sessions_;
    const std::string parent_;
    const std::string checkpoint_;
    const BranchesOrder order_;
    std::vector<std::optional<Made>> made_;
    std::optional<Error> full_;
    std::size_t next_ = 0;
    std::size_t workers_ = 0;
    boost::asio::steady_timer ended_;  // cancelled by the last worker
};

}  // namespace cellkeep::api
