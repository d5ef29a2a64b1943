// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/envd/command_deadlines.hpp"

#include "kernel-manager/e2b/limits.hpp"
#include "kernel-manager/process/command_table.hpp"

#include <boost/asio/steady_timer.hpp>

#include <csignal>
#include <utility>

namespace cellkeep::e2b {

struct CommandDeadlines::Deadline {
    Deadline(boost::asio::io_context& io, PassedDeadline about)
        : passed(std::move(about)), timer(io) {}
    PassedDeadline passed;
    std::weak_ptr<session::Session> session;
    boost::asio::steady_timer timer;
    std::shared_ptr<void> news;
    bool left = false;  // this object may be gone
};

CommandDeadlines::~CommandDeadlines() {
    leave();
}

void CommandDeadlines::set(
    const Session& session,
    const std::shared_ptr<process::Command>& command,
    Clock::time_point due) {
    if (command->end()) {
        return;
    }
    const auto deadline =
        std::make_shared<Deadline>(io_, PassedDeadline{session->id(), command->id(), due});
    deadline->session = session;
    deadline->news =
        command->subscribe([deadline = std::weak_ptr(deadline), command = std::weak_ptr(command)] {
            const auto waiting = deadline.lock();
            const auto alive = command.lock();
            if (waiting != nullptr && (alive == nullptr || alive->end())) {
                waiting->timer.cancel();
            }
        });
    deadlines_.insert_or_assign(command->id(), deadline);
    wait(deadline, due);
}

std::vector<PassedDeadline> CommandDeadlines::list() const {
    std::vector<PassedDeadline> all;
    for (const auto& [id, deadline] : deadlines_) {
        all.push_back(deadline->passed);
    }
    return all;
}

void CommandDeadlines::leave() {
    for (const auto& [id, deadline] : std::exchange(deadlines_, {})) {
        deadline->left = true;
        deadline->timer.cancel();
    }
}

void CommandDeadlines::wait(const std::shared_ptr<Deadline>& deadline, Clock::time_point until) {
    deadline->timer.expires_at(until);
    deadline->timer.async_wait([this, deadline](const boost::system::error_code& cancelled) {
        if (deadline->left) {
            return;
        }
        if (cancelled) {
            forget(deadline);
        } else {
            kill_or_wait(deadline);
        }
    });
}

/// A sandbox that is paused is not woken for it: the deadline waits until others wake it.
void CommandDeadlines::kill_or_wait(const std::shared_ptr<Deadline>& deadline) {
    const auto session = deadline->session.lock();
    if (session != nullptr && session->commands() != nullptr) {
        if (session->info().paused) {
            wait(deadline, Clock::now() + kPausedLook);
            return;
        }
        // Ignored: it may have ended meanwhile.
        (void)session->commands()->signal(deadline->passed.command_id, SIGKILL);
    }
    forget(deadline);
}

void CommandDeadlines::forget(const std::shared_ptr<Deadline>& deadline) {
    const auto found = deadlines_.find(deadline->passed.command_id);
    if (found != deadlines_.end() && found->second == deadline) {
        deadlines_.erase(found);
    }
}

}  // namespace cellkeep::e2b
