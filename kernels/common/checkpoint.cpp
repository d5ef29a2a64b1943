// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/checkpoint.hpp"

#include "kernels/common/moved_files.hpp"
#include "protocol/internal_request.hpp"
#include "protocol/support/syscall.hpp"
#include "sandbox/inside/copy/parked_threads.hpp"
#include "sandbox/inside/copy/sleeping_copy.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

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

using Threads = sandbox::CopyOrder::Threads;

bool can_carry(const CopyHooks::State& state) {
    return state.carries_threads && sandbox::can_park_threads();
}

/// What becomes of other threads; nullopt: they are in the way.
std::optional<Threads> choose(
    const ProcessCensus& census, const nlohmann::json& request, const CopyHooks::State& state) {
    const std::string on_threads = request.value("on_threads", std::string());
    if (census.threads == 0) {
        return Threads::kNone;
    }
    if (on_threads == "drop") {
        return Threads::kDrop;
    }
    return on_threads == "carry" && can_carry(state) ? std::optional(Threads::kCarry)
                                                     : std::nullopt;
}

/// The name that the thread has given itself (PR_SET_NAME(2const)).
std::string name_of(pid_t thread) {
    const auto name = read_file("/proc/self/task/" + std::to_string(thread) + "/comm", 64);
    return name.has_value() ? name.value().substr(0, name.value().find('\n')) : std::string();
}

nlohmann::json refuse_failed(const sandbox::CopyOutcome& outcome) {
    if (outcome.thread == 0) {
        return refuse(protocol::kNotForkableSystem, outcome.error);
    }
    nlohmann::json content = refuse(protocol::kNotForkableThread, outcome.thread);
    content["name"] = name_of(outcome.thread);
    return content;
}

struct CopyFacts {
    pid_t copied = 0;
    Threads threads = Threads::kNone;
    int execution_count = 0;
    bool goes_on = false;
};

nlohmann::json describe(const CopyFacts& facts, const ProcessCensus& census) {
    return {
        {"status", "ok"},
        {"pid", facts.copied},
        {"execution_count", facts.execution_count},
        {"carried_threads", facts.threads == Threads::kCarry ? census.threads : 0},
        {"goes_on", facts.goes_on},
        {"prepares", true},
        {"lost",
         {{"threads", facts.threads == Threads::kDrop ? census.threads : 0},
          {"children", census.children},
          {"sockets", census.sockets},
          {"shared_mappings", census.shared_mappings}}}};
}

/// In a branch, when its files are its own.
void move_to(const std::vector<sandbox::FilePosition>& files) {
    for (const sandbox::FilePosition& file : files) {
        // Ignored: a file that cannot be positioned has no position to lose.
        (void)::lseek(file.fd, file.offset, SEEK_SET);
    }
}

}  // namespace

/// For a function without a state.
struct Checkpoint::Begin {
    Checkpoint& checkpoint;
    CopyHooks& hooks;
    static void run(void* self, bool reseed) {
        auto& begin = *static_cast<Begin*>(self);
        begin.checkpoint.go_on(begin.hooks, reseed);
    }
    static void settle(void* self) { static_cast<Begin*>(self)->hooks.settle_copy(); }
};

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
    const std::optional<Threads> threads = choose(census.value(), request, state);
    if (!threads) {
        nlohmann::json refusal = refuse(protocol::kNotForkableThreads, census.value().threads);
        refusal["carries"] = can_carry(state);
        return refusal;
    }
    // What is buffered would be written again by each process that goes on from the copy.
    (void)std::fflush(nullptr);
    (void)link_.flush();  // Ignored: fails only when the peer is gone, and the loop sees that next.
    const std::string directory = current_directory();
    hooks->before_copy(threads == Threads::kCarry);
    Begin begin{*this, *hooks};
    const sandbox::CopyOutcome outcome = sandbox::make_sleeping_copy(
        {.socket = socket.get(),
         .channels = census.value().channels,
         .threads = *threads,
         .files = census.value().files,
         .beginning = {&Begin::run, &Begin::settle, &begin}});
    if (outcome.where == sandbox::CopyOutcome::Where::kWoken) {
        (void)socket.release();  // It was closed on waking.
        if (outcome.branch) {
            take_own_files(directory);
            move_to(census.value().files);
        }
        if (!outcome.begun) {
            go_on(*hooks, outcome.reseed);
        }
        return std::nullopt;
    }
    hooks->after_copy();
    return outcome.where == sandbox::CopyOutcome::Where::kHere
               ? describe(
                     {outcome.copied, *threads, interpreter.execution_count(), state.goes_on},
                     census.value())
               : refuse_failed(outcome);
}

void Checkpoint::go_on(CopyHooks& hooks, bool reseed) {
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
