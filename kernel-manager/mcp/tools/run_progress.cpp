// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/tools/run_progress.hpp"

#include "kernel-manager/mcp/limits.hpp"
#include "kernel-manager/mcp/tools/run_answer.hpp"

#include <string>

namespace cellkeep::mcp {

std::shared_ptr<RunProgress> RunProgress::begin(
    const boost::asio::any_io_executor& executor,
    std::shared_ptr<const Call> call,
    std::shared_ptr<const session::Execution> execution) {
    auto progress = std::shared_ptr<RunProgress>(
        new RunProgress(executor, std::move(call), std::move(execution)));
    progress->wait();
    return progress;
}

/// A client that has gone hears nothing more.
void RunProgress::wait() {
    if (!call_->wants_progress()) {
        return;
    }
    timer_.expires_after(kProgressInterval);
    timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
        if (const auto self = weak.lock(); self && !error) {
            self->report();
            self->wait();
        }
    });
}

void RunProgress::report() {
    const NewOutput output = read_new_output(execution_->events(), seen_);
    seen_ = output.cursor;
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - begun_)
            .count();
    std::string text = "running for " + std::to_string(seconds) + " s";
    if (const auto* call = call_for_approval(*execution_)) {
        text += ", " + call->tool + " waits for an approval";
    }
    const std::string line = last_line(output);
    text += line.empty() ? "" : ": " + line;
    call_->report_progress(static_cast<double>(seconds), text);
}

}  // namespace cellkeep::mcp
