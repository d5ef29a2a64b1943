// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/process/process_end.hpp"

#include "kernel-manager/limits/limit_reason.hpp"

#include <csignal>
#include <utility>

namespace cellkeep::session {

void ProcessEnd::begin() {
    kill_reason_.reset();
    ended_.reset();
    settled_ = {};
    last_words_.clear();
}

void ProcessEnd::add_words(std::string_view text) {
    last_words_.append(text);
    if (last_words_.size() > kLastWordsBytesMax) {
        last_words_.erase(0, last_words_.size() - kLastWordsBytesMax);
    }
}

bool ProcessEnd::kill(const Death& why) {
    if (ended_.has_value()) {
        // It has died of something else, and only what is to come can still be asked for.
        if (why.kind == Death::Kind::kRequested) {
            ended_ = why;
            settled_.restarts.reset();
        }
        return false;
    }
    if (!kill_reason_.has_value()) {
        kill_reason_ = why;
    }
    return true;
}

void ProcessEnd::on_exit(const sandbox::WorkerExit& exit, std::uint64_t oom_kills, Cut cut) {
    const bool out_of_memory = oom_kills > std::exchange(oom_kills_seen_, oom_kills);
    if (kill_reason_.has_value()) {
        ended_ = kill_reason_;
    } else if (!exit.failure.empty()) {
        last_words_ = exit.failure;
        ended_ = Death{Death::Kind::kStartFailed, 0};
    } else if (is_limit(cut)) {
        // The deadline's interrupt ended it, before it came to killing.
        ended_ = Death{death_after(cut), 0};
    } else if (exit.signaled && exit.status == SIGKILL && out_of_memory) {
        ended_ = Death{Death::Kind::kOom, 0};
    } else {
        ended_ = Death{exit.signaled ? Death::Kind::kSignal : Death::Kind::kExited, exit.status};
    }
}

bool ProcessEnd::is_killed_for(Death::Kind kind) const {
    return kill_reason_.has_value() && kill_reason_->kind == kind;
}

Death ProcessEnd::reason() const {
    return ended_.has_value() ? *ended_ : on_sandbox_died();
}

Death ProcessEnd::on_sandbox_died() const {
    return kill_reason_.value_or(Death{Death::Kind::kSandboxDied, 0});
}

void ProcessEnd::inform(const protocol::Message& request, bool restarts) {
    settled_ = {.restarts = restarts, .informed = request};
}

ProcessEnd::Settled ProcessEnd::complete() {
    ended_.reset();
    return std::exchange(settled_, {});
}

bool RestartPolicy::allows(const Death& death, bool is_spare, bool has_worked, Time now) {
    if (is_spare) {
        return false;  // another session is made in its place
    }
    if (death.kind == Death::Kind::kRequested) {
        return true;
    }
    // One that has never worked will not work the next time; a crash loop must end.
    if (!has_worked || death.kind == Death::Kind::kSandboxDied) {
        return false;
    }
    return budget_.take(now);
}

}  // namespace cellkeep::session
