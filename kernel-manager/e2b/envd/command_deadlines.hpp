// SPDX-License-Identifier: Apache-2.0
//
// Commands that are killed when the time is over that their clients gave them, even if no client
// follows them any more. io_context thread only.
#pragma once

#include "kernel-manager/process/command.hpp"
#include "kernel-manager/session/session.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace cellkeep::e2b {

/// One on its way to another program in the server's process.
struct PassedDeadline {
    std::string session_id;
    std::string command_id;
    std::chrono::steady_clock::time_point due;
};

class CommandDeadlines {
 public:
    using Clock = std::chrono::steady_clock;
    using Session = std::shared_ptr<session::Session>;

    explicit CommandDeadlines(boost::asio::io_context& io) : io_(io) {}
    CommandDeadlines(const CommandDeadlines&) = delete;
    CommandDeadlines& operator=(const CommandDeadlines&) = delete;
    ~CommandDeadlines();

    /// Of a command that has none yet. It goes with the command's end.
    void set(
        const Session& session,
        const std::shared_ptr<process::Command>& command,
        Clock::time_point due);
    /// Those of commands that run.
    std::vector<PassedDeadline> list() const;
    /// No command is killed here any more.
    void leave();

 private:
    struct Deadline;
    void wait(const std::shared_ptr<Deadline>& deadline, Clock::time_point until);
    void kill_or_wait(const std::shared_ptr<Deadline>& deadline);
    void forget(const std::shared_ptr<Deadline>& deadline);

    boost::asio::io_context& io_;
    std::map<std::string, std::shared_ptr<Deadline>> deadlines_;  // by command id
};

}  // namespace cellkeep::e2b
