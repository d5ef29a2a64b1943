// SPDX-License-Identifier: Apache-2.0
//
// A shell that a SWE-ReX client talks to: bash at a terminal in the session's sandbox, with a
// prompt of our own that says how the last command ended. Keeps the output that
// the client has not read yet. The command is the session's. io_context thread only.
#pragma once

#include "kernel-manager/process/command.hpp"
#include "kernel-manager/session/session.hpp"
#include "kernel-manager/swerex/orders.hpp"
#include "kernel-manager/swerex/passed_shells.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::swerex {

/// What a shell said until something ended it.
struct ShellAnswer {
    enum class How { kPrompt, kExpected, kTimeout, kEnded } how = How::kPrompt;
    std::string output;  // without control sequences
    int exit_code = 0;   // of a prompt
    std::string matched;
};

class Shell {
 public:
    using Session = std::shared_ptr<session::Session>;

    /// Ready for its first line. kTimeout: bash did not come up. Else as CommandTable::start().
    static boost::asio::awaitable<Result<std::shared_ptr<Shell>>> start(Session session);
    Shell(const Shell&) = delete;
    Shell& operator=(const Shell&) = delete;
    ~Shell() = default;

    /// One line for the terminal, which may hold ends of lines. As CommandTable::write().
    boost::asio::awaitable<Status> type(std::string line);
    /// Until the next prompt, or an expected text. One waits at a time.
    boost::asio::awaitable<ShellAnswer> wait(std::vector<std::string> expected, Time time);
    /// No echo of what is typed: some programs switch it on.
    boost::asio::awaitable<Status> silence();

    bool ended() const { return command_->end().has_value(); }
    bool busy() const { return busy_; }
    /// Ends it with all that it runs at its terminal.
    void close();

    // --- its way to another program in the server's process
    /// About what pass_on() passes.
    std::size_t passed_bytes() const;
    /// Precondition: it is not busy.
    PassedShell pass_on() const;
    /// Its session has its commands again. Null: it has none such.
    static std::shared_ptr<Shell> go_on(Session session, PassedShell passed);

 private:
    Shell(Session session, std::string prompt)
        : session_(std::move(session)), prompt_(std::move(prompt)) {}
    void take_output();
    ShellAnswer answer_of(std::size_t at, std::size_t behind);

    const Session session_;
    const std::string prompt_;
    std::shared_ptr<process::Command> command_;
    std::uint64_t place_ = 0;     // of its output that was read
    std::string said_;            // and not yet answered
    std::size_t searched_ = 0;    // of that, without an end in it
    std::uint64_t left_out_ = 0;  // bytes of it that went for newer ones
    bool busy_ = false;
};

}  // namespace cellkeep::swerex
