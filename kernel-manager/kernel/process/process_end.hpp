// SPDX-License-Identifier: Apache-2.0
//
// The end of one interpreter process after another, from the decision to kill it or the report of
// its exit until its remains are gone: why it ends, what was decided about the next one, and whose
// cell has been answered already. RestartPolicy decides whether there is a next one. State machines
// without a clock, a process or a sandbox. Not thread-safe.
#pragma once

#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/execution/execution_recorder.hpp"
#include "kernel-manager/limits/restart_budget.hpp"
#include "protocol/message.hpp"
#include "sandbox/sandbox.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace cellkeep::session {

/// What is kept of the text that an interpreter wrote before it was ready.
inline constexpr std::size_t kLastWordsBytesMax = 4096;

class ProcessEnd {
 public:
    /// What was settled about an end before it was complete.
    struct Settled {
        /// Whether there will be another process, if that was decided.
        std::optional<bool> restarts;
        /// The request whose client already knows of the end.
        std::optional<protocol::Message> informed;
    };

    // --- while the process lives
    /// A new process begins: nothing that was known of the old one holds.
    void begin();
    /// The sandbox's count of OOM kills at the start of the process or of its run: only a later
    /// one may be its death.
    void see_oom_kills(std::uint64_t count) { oom_kills_seen_ = count; }
    std::uint64_t oom_kills_seen() const { return oom_kills_seen_; }
    /// It writes before it is ready: the newest kLastWordsBytesMax are kept.
    void add_words(std::string_view text);
    const std::string& last_words() const { return last_words_; }

    // --- its end
    /// Returns whether to send SIGKILL: not to what has ended. The first reason stays, but who asks
    /// for the end of a process that has ended also decides what comes after it.
    bool kill(const Death& why);
    /// Its exit was reported, once for each process. oom_kills: the sandbox's count now. cut: how
    /// the request that it ran was being cut short.
    void on_exit(const sandbox::WorkerExit& exit, std::uint64_t oom_kills, Cut cut);
    /// The exit was reported; what the process left running may live.
    bool is_ended() const { return ended_.has_value(); }
    /// The exit was reported, or the process is being killed: it gets no further request.
    bool is_near() const { return ended_.has_value() || kill_reason_.has_value(); }
    bool is_killed_for(Death::Kind kind) const;
    /// Why it ends. kSandboxDied if there is no other reason.
    Death reason() const;
    /// The sandbox is gone with everything in it. Returns why.
    Death on_sandbox_died() const;

    /// Informs the client of this request of the end, and whether there will be a restart.
    void inform(const protocol::Message& request, bool restarts);
    /// Whether there will be another process, if that was decided.
    std::optional<bool> restarts() const { return settled_.restarts; }
    /// What remains does not go: there is no restart.
    void give_up() { settled_.restarts = false; }
    /// The end is complete. Returns what was settled; a second call returns nothing.
    Settled complete();

 private:
    std::optional<Death> kill_reason_;  // why the server kills the present process
    std::optional<Death> ended_;        // why it has ended; what it left is being killed
    std::uint64_t oom_kills_seen_ = 0;
    Settled settled_;
    std::string last_words_;
};

class RestartPolicy {
 public:
    using Time = std::chrono::steady_clock::time_point;

    RestartPolicy(std::size_t deaths_max, std::chrono::steady_clock::duration window)
        : budget_(deaths_max, window) {}

    /// Returns whether an interpreter follows the one that died, and counts the death then.
    /// is_spare: the session has no client. has_worked: the interpreter had become ready.
    bool allows(const Death& death, bool is_spare, bool has_worked, Time now);
    /// Somebody asks for a restart: earlier deaths no longer count.
    void forget_deaths() { budget_.reset(); }
    void count_restart() { ++restarts_; }
    std::uint64_t restarts() const { return restarts_; }
    const std::deque<Time>& deaths() const { return budget_.deaths(); }
    /// As another program in this process has counted.
    void go_on(std::uint64_t restarts, std::deque<Time> deaths) {
        restarts_ = restarts;
        budget_.set_deaths(std::move(deaths));
    }

 private:
    RestartBudget budget_;
    std::uint64_t restarts_ = 0;
};

}  // namespace cellkeep::session
