// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/process/run_to_end.hpp"

#include "kernel-manager/process/paced_input.hpp"
#include "protocol/support/await.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <cstdint>
#include <memory>
#include <utility>

namespace cellkeep::process {

namespace {

boost::asio::awaitable<Result<FinishedRun>> gather_run(
    std::shared_ptr<Command> command, RunBounds bounds) {
    const auto timer =
        std::make_shared<boost::asio::steady_timer>(co_await boost::asio::this_coro::executor);
    const auto news = command->subscribe([timer] { timer->cancel(); });
    const auto deadline = std::chrono::steady_clock::now() + bounds.time;
    FinishedRun run;
    std::uint64_t place = 0;
    while (true) {
        const auto next = command->read_after(place);
        if (!next.text.empty()) {
            (next.stream == Stream::kStdout ? run.out : run.err) += next.text;
            place = next.end;
            if (run.out.size() + run.err.size() > bounds.output_bytes) {
                co_return Error::in_field(
                    ErrorCode::kLimitExceeded, kRunOutput, "the program says too much");
            }
            continue;
        }
        if (command->end()) {
            run.end = *command->end();
            co_return run;
        }
        if (std::chrono::steady_clock::now() >= deadline) {
            co_return Error(ErrorCode::kTimeout, "The program takes too long.");
        }
        timer->expires_at(deadline);
        (void)co_await timer->async_wait(kAwait);
    }
}

boost::asio::awaitable<Result<FinishedRun>> feed_and_gather(
    CommandTable& table, std::shared_ptr<Command> command, std::string input, RunBounds bounds) {
    if (!input.empty()) {
        auto same = command;
        const Status written = co_await write_paced(table, std::move(same), std::move(input), true);
        // One that does not read on has ended, or is about to say why.
        if (written.has_error() && written.error().code() != ErrorCode::kConflict) {
            co_return written.error();
        }
    }
    Result<FinishedRun> run = co_await gather_run(std::move(command), bounds);
    co_return run;
}

}  // namespace

int FinishedRun::status() const {
    return end.kind == CommandEnd::Kind::kSignaled ? -end.status : end.status;
}

boost::asio::awaitable<Result<FinishedRun>> run_to_end(
    CommandTable& table, CommandOrder order, std::string input, RunBounds bounds) {
    order.open_input = !input.empty();
    order.when_full = WhenFull::kWait;
    order.awaited = true;
    const auto started = co_await table.start(std::move(order));
    if (started.has_error()) {
        co_return started.error();
    }
    auto command = started.value();
    Result<FinishedRun> run =
        co_await feed_and_gather(table, std::move(command), std::move(input), bounds);
    // Kills it if it has not ended. Ignored: the session may have.
    (void)table.remove(started.value()->id());
    if (run.has_value() && run.value().end.kind == CommandEnd::Kind::kSessionEnded) {
        co_return Error(ErrorCode::kUnavailable, "The session has ended.");
    }
    co_return run;
}

}  // namespace cellkeep::process
