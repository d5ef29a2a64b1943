// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/checkpoint.hpp"

#include "kernels/common/moved_files.hpp"
#include "protocol/internal_request.hpp"
#include "protocol/support/syscall.hpp"
#include "sandbox/inside/sleeping_copy.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

namespace cellkeep::kernels {

namespace {

nlohmann::json refuse(std::string_view reason, std::int64_t count = 0) {
    nlohmann::json content = make_error_content(protocol::kNotForkable, reason);
    content["count"] = count;
    return content;
}

bool has_link(const ProcessCensus& census) {
    return std::any_of(census.channels.begin(), census.channels.end(), [](const auto& channel) {
        return channel.end == sandbox::ChannelEnd::kLink;
    });
}

nlohmann::json describe(pid_t copied, const ProcessCensus& census, int execution_count) {
    return {
        {"status", "ok"},
        {"pid", copied},
        {"execution_count", execution_count},
        {"lost",
         {{"threads", census.threads},
          {"children", census.children},
          {"sockets", census.sockets}}}};
}

}  // namespace

Checkpoint::Checkpoint(Link& link, Outbox& outbox) : link_(link), outbox_(outbox) {
    note_channels();
}

void Checkpoint::note_channels() {
    channels_ = {identify(STDOUT_FILENO), identify(STDERR_FILENO), identify(link_.fd())};
}

std::optional<nlohmann::json> Checkpoint::make(
    Interpreter& interpreter, const nlohmann::json& request, UniqueFd socket) {
    CopyHooks* const hooks = interpreter.copy_hooks();
    if (hooks == nullptr) {
        return refuse(protocol::kNotForkableLanguage);
    }
    const CopyHooks::State state = hooks->look();
    if (!state.refusal.empty()) {
        return refuse(state.refusal);
    }
    std::vector<int> own_sockets = state.own_sockets;
    own_sockets.push_back(socket.get());
    const Result<ProcessCensus> census = take_census(channels_, own_sockets);
    if (!census || !has_link(census.value())) {
        return refuse(protocol::kNotForkableSystem);
    }
    if (census.value().threads > 0 && request.value("on_threads", std::string()) != "drop") {
        return refuse(protocol::kNotForkableThreads, census.value().threads);
    }
    // What is buffered would be written again by each process that goes on from the copy.
    (void)std::fflush(nullptr);
    (void)link_.flush();  // Ignored: fails only when the peer is gone, and the loop sees that next.
    const std::string directory = current_directory();
    hooks->before_copy();
    const sandbox::CopyOutcome outcome = sandbox::make_sleeping_copy(
        {.socket = socket.get(),
         .channels = census.value().channels,
         .has_threads = census.value().threads > 0});
    if (outcome.where == sandbox::CopyOutcome::Where::kWoken) {
        (void)socket.release();  // It was closed on waking.
        if (outcome.branch) {
            take_own_files(directory);
        }
        go_on(*hooks, census.value(), outcome.reseed);
        return std::nullopt;
    }
    hooks->after_copy();
    return outcome.where == sandbox::CopyOutcome::Where::kHere
               ? describe(outcome.copied, census.value(), interpreter.execution_count())
               : refuse(protocol::kNotForkableSystem, outcome.error);
}

void Checkpoint::go_on(CopyHooks& hooks, const ProcessCensus& census, bool reseed) {
    for (const FilePosition& file : census.files) {
        // The process that was left has moved it: a fork shares it. Ignored: a file that cannot be
        // positioned has no position to lose.
        (void)::lseek(file.fd, file.offset, SEEK_SET);
    }
    note_channels();
    constexpr std::size_t kSessionIdBytes = 16;
    Result<std::string> session = secret_hex(kSessionIdBytes);
    if (!session) {
        (void)std::fprintf(stderr, "cellkeep kernel: %s\n", session.error().message().c_str());
        std::_Exit(EXIT_FAILURE);
    }
    outbox_.rename(std::move(session.value()));
    outbox_.set_output_parent("{}");
    hooks.after_rollback(reseed);
}

}  // namespace cellkeep::kernels
