// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/envd/inside_command.hpp"

#include "kernel-manager/e2b/limits.hpp"
#include "kernel-manager/process/run_to_end.hpp"

#include <utility>

namespace cellkeep::e2b {

boost::asio::awaitable<Result<InsideRun>> run_inside(
    RpcSession session, std::vector<std::string> argv) {
    process::CommandTable* const table = session->commands();
    if (table == nullptr) {
        co_return Error(ErrorCode::kUnavailable, "Processes are not offered here.");
    }
    process::CommandOrder order;
    order.argv = std::move(argv);
    order.directory = "/";
    std::string no_input;
    const process::RunBounds bounds{kInsidePatience, kInsideOutputBytesMax};
    auto run = co_await process::run_to_end(*table, std::move(order), std::move(no_input), bounds);
    if (run.has_error() && run.error().field() == process::kRunOutput) {
        co_return Error(ErrorCode::kLimitExceeded, "there is more than can be listed");
    }
    if (run.has_error()) {
        co_return run.error();
    }
    process::FinishedRun& done = run.value();
    // One that never became a program has no exit code: it is none that a script gives.
    const bool exited = done.end.kind == process::CommandEnd::Kind::kExited;
    co_return InsideRun{
        exited ? done.status() : kNoExitCode, std::move(done.out), std::move(done.err)};
}

}  // namespace cellkeep::e2b
