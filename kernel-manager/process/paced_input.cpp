// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/process/paced_input.hpp"

#include "protocol/support/await.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <string_view>
#include <utility>

namespace cellkeep::process {

boost::asio::awaitable<Status> write_paced(
    CommandTable& table, std::shared_ptr<Command> command, std::string text, bool last) {
    const auto timer =
        std::make_shared<boost::asio::steady_timer>(co_await boost::asio::this_coro::executor);
    const auto news = command->subscribe([timer] { timer->cancel(); });
    std::string_view rest = text;
    auto deadline = std::chrono::steady_clock::now() + kInputPatience;
    while (true) {
        const std::string_view step = rest.substr(0, kInputStepBytes);
        const bool is_last = step.size() == rest.size();
        Status written = table.write(command->id(), step, last && is_last);
        const bool full =
            written.has_error() && written.error().code() == ErrorCode::kLimitExceeded;
        if (!full && (written.has_error() || is_last)) {
            co_return written;
        }
        if (!full) {
            rest.remove_prefix(step.size());
            deadline = std::chrono::steady_clock::now() + kInputPatience;
            continue;
        }
        if (std::chrono::steady_clock::now() >= deadline) {
            co_return written;
        }
        timer->expires_at(deadline);
        (void)co_await timer->async_wait(kAwait);
    }
}

}  // namespace cellkeep::process
