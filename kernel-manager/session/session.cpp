// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/session.hpp"

#include <utility>

namespace cellkeep::session {

OfferedLanguages languages_of(const SessionInfo& info) {
    OfferedLanguages offered{{info.language}, info.not_offered};
    for (const LanguageInfo& one : info.languages) {
        if (one.name != info.language) {
            offered.names.push_back(one.name);
        }
    }
    return offered;
}

boost::asio::awaitable<Result<ExecutionResult>> Session::execute(ExecutionRequest request) {
    const auto begun = begin(std::move(request));
    if (begun.has_error()) {
        co_return begun.error();
    }
    const std::shared_ptr<Execution>& execution = begun.value();
    const FinishedExecution finished = co_await execution->wait();
    co_return *finished;
}

boost::asio::awaitable<Result<checkpoint::CheckpointMade>> Session::make_checkpoint(
    checkpoint::CheckpointOrder /*order*/) {
    checkpoint::CheckpointMade made;
    made.refused = checkpoint::NotForkable{checkpoint::NotForkable::Why::kLanguage, 0};
    co_return made;
}

boost::asio::awaitable<checkpoint::CheckpointList> Session::list_checkpoints() {
    co_return checkpoint::CheckpointList();
}

boost::asio::awaitable<Result<checkpoint::FileChanges>> Session::compare_files(
    checkpoint::ComparisonOrder order) {
    co_return Error::in_field(
        ErrorCode::kNotFound, "against", "the session has no checkpoint " + order.against);
}

boost::asio::awaitable<Result<checkpoint::SessionFiles>> Session::look_at_files() {
    co_return Error(ErrorCode::kUnavailable, "files: this session keeps none");
}

boost::asio::awaitable<Result<checkpoint::MergeAnswer>> Session::merge_files(
    checkpoint::SessionFiles /*theirs*/, checkpoint::MergeOrder /*order*/) {
    co_return Error(ErrorCode::kUnavailable, "files: this session keeps none");
}

Result<std::vector<std::shared_ptr<Execution>>> Session::begin_all(
    // NOLINTNEXTLINE(performance-unnecessary-value-param): sessions that override this keep it.
    std::vector<ExecutionRequest> /*requests*/) {
    return Error(ErrorCode::kUnavailable, "execute: this session takes one execution at a time");
}

boost::asio::awaitable<Result<UniqueFd>> Session::connect_port(std::uint16_t /*port*/) {
    co_return Error(ErrorCode::kUnavailable, "connect: this session has no ports");
}

Result<TreeWatch> Session::watch_files(const std::string& /*path*/, TreeWatch::Depth /*depth*/) {
    return Error(ErrorCode::kUnavailable, "watch: this session's files cannot be watched");
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): sessions that override this keep it.
Status Session::freeze(std::function<void()> /*woken*/) {
    return Error(ErrorCode::kUnavailable, "freeze: this session cannot be frozen");
}

Result<sandbox::Usage> Session::usage() const {
    return Error(ErrorCode::kUnavailable, "usage: this session counts nothing");
}

Status Session::remove_checkpoint(const std::string& id) {
    return Error::in_field(
        ErrorCode::kNotFound, "checkpoint", "the session has no checkpoint " + id);
}

boost::asio::awaitable<Result<checkpoint::RolledBack>> Session::roll_back(
    checkpoint::RollbackOrder order) {
    co_return Error::in_field(
        ErrorCode::kNotFound, "checkpoint", "the session has no checkpoint " + order.checkpoint);
}

}  // namespace cellkeep::session
