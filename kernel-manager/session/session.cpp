// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/session.hpp"

#include <utility>

namespace cellkeep::session {

boost::asio::awaitable<Result<ExecutionResult>> Session::execute(ExecutionRequest request) {
    const auto begun = begin(std::move(request));
    if (begun.has_error()) {
        co_return begun.error();
    }
    const std::shared_ptr<Execution>& execution = begun.value();
    const FinishedExecution finished = co_await execution->wait();
    co_return *finished;
}

}  // namespace cellkeep::session
