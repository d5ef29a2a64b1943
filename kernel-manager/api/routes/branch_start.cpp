// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/routes/branch_start.hpp"

#include "kernel-manager/api/answers/checkpoint_answers.hpp"

#include <cstdint>
#include <utility>

namespace cellkeep::api {

http::Problem explain_refusal(
    const Error& error, const session::Session& parent, const std::string& from) {
    if (error.code() == ErrorCode::kNotFound) {
        return no_checkpoint(from, parent.find_gone_checkpoint(from));
    }
    if (error.code() == ErrorCode::kSystem || error.code() == ErrorCode::kProtocol ||
        error.code() == ErrorCode::kPermissionDenied) {
        return not_forkable(
            {checkpoint::NotForkable::Why::kSystem,
             static_cast<std::uint32_t>(error.errno_value())});
    }
    return http::problem_from(error);
}

boost::asio::awaitable<BranchStart> find_start(
    std::shared_ptr<session::Session> parent,
    std::optional<std::string> from,
    checkpoint::OnThreads on_threads) {
    BranchStart start;
    if (from) {
        if (!parent->has_checkpoint(*from)) {
            start.problem = no_checkpoint(*from, parent->find_gone_checkpoint(*from));
        }
        start.checkpoint = std::move(*from);
        co_return start;
    }
    checkpoint::CheckpointOrder now;
    now.on_threads = on_threads;
    const auto made = co_await parent->make_checkpoint(std::move(now));
    if (made.has_error()) {
        start.problem = explain_refusal(made.error(), *parent, "");
    } else if (made.value().refused) {
        start.problem = not_forkable(*made.value().refused);
    } else {
        start.checkpoint = made.value().checkpoint.id;
        start.evicted = made.value().evicted;
    }
    co_return start;
}

boost::asio::awaitable<BranchStart> find_state(
    std::shared_ptr<session::Session> parent, StateOrder wanted) {
    BranchStart start;
    if (parent == nullptr) {
        start.problem = http::make_problem(
            404,
            "unknown-session",
            "No such session",
            "There is no session " + wanted.session + ", or it has ended.");
        co_return start;
    }
    if (!parent->info().branches) {
        start.problem = http::make_problem(
            409,
            "The session was not made to be branched. Create it with \"checkpoints\": "
            "{\"branches\": true}.");
        co_return start;
    }
    std::optional<std::string> checkpoint = wanted.checkpoint;
    start = co_await find_start(std::move(parent), std::move(checkpoint), wanted.on_threads);
    co_return start;
}

}  // namespace cellkeep::api
