// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/service/session_service.hpp"

namespace cellkeep::session {

boost::asio::awaitable<void> SessionService::wait_until_gone(std::string /*id*/) {
    co_return;
}

boost::asio::awaitable<Result<std::shared_ptr<Session>>> SessionService::branch(
    BranchOrder /*order*/) {
    co_return Error(ErrorCode::kUnavailable, "branch: this service has none");
}

}  // namespace cellkeep::session
