// SPDX-License-Identifier: Apache-2.0
//
// The commands of one session: starts them, signals them, remembers those that have ended. They run
// in the session's sandbox, under its limits, and end with it; a restart of an interpreter leaves
// them alone. Owns the commands; what it asks of the sandbox is behind its hooks. io_context thread
// only.
#pragma once

#include "kernel-manager/kernel/process/worker_starts.hpp"
#include "kernel-manager/process/command.hpp"
#include "kernel-manager/process/limits.hpp"
#include "kernel-manager/process/output_ration.hpp"
#include "protocol/support/alarm.hpp"
#include "protocol/support/completion.hpp"
#include "protocol/support/result.hpp"
#include "sandbox/sandbox.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::process {

struct PassedCommands;

class CommandTable {
 public:
    /// None is empty.
    struct Hooks {
        /// session::WorkerStarts::begin().
        std::function<Result<std::shared_ptr<session::WorkerStart>>(
            sandbox::WorkerSpec, session::WorkerStart::Done)>
            begin;
        /// sandbox::Sandbox::signal().
        std::function<Status(sandbox::WorkerId, int)> signal;
        /// The whole environment of a command with these variables of its own.
        std::function<std::vector<std::string>(const std::map<std::string, std::string>&)>
            environment;
        /// Where a command starts that names no directory: absolute, inside.
        std::function<std::string()> directory;
        /// Thaws what is inside.
        std::function<void()> wake;
        /// A client has used a command, or one has said something.
        std::function<void()> note_use;
        /// A command has ended.
        std::function<void()> note_end;
    };

    /// keep_session holds the owner of this object while something waits.
    CommandTable(boost::asio::io_context& io, Hooks hooks, KeepAlive keep_session);
    CommandTable(const CommandTable&) = delete;
    CommandTable& operator=(const CommandTable&) = delete;
    ~CommandTable();

    // --- what clients ask
    /// Returns when there is a process. Whether it has become its program is known later: one that
    /// could not is a command that has ended (CommandEnd::Kind::kFailed). kLimitExceeded: there are
    /// kCommandsMax, or the session's limit of processes is reached. kInvalidArgument: arguments,
    /// variables and directory are too long together. kConflict: the session has ended.
    /// kUnavailable: processes that were killed before have not ended yet. Others are those of
    /// session::WorkerStarts.
    boost::asio::awaitable<Result<std::shared_ptr<Command>>> start(CommandOrder order);
    /// In the order in which they were started.
    std::vector<std::shared_ptr<Command>> list() const;
    /// Null: there is none, or it is forgotten.
    std::shared_ptr<Command> find(const std::string& id) const;
    /// Gives a command more to read; then, if it is the last, the end of its input. All of it or
    /// nothing. kNotFound; kConflict if it has ended; otherwise as Command::write().
    Status write(const std::string& id, std::string_view text, bool last);
    /// To the command and its process group. kNotFound; kConflict if it has ended; as
    /// sandbox::Sandbox::signal().
    Status signal(const std::string& id, int number);
    /// kNotFound; kConflict if it has ended or has no terminal.
    Status resize(const std::string& id, TerminalSize size);
    /// Kills the command and its process group, and forgets it when it has ended. kNotFound; as
    /// sandbox::Sandbox::signal().
    Status remove(const std::string& id);

    // --- what the session reports to it
    void on_worker_exit(const sandbox::WorkerExit& exit);
    void on_sandbox_died();
    /// The session has ended, and all commands with it.
    void close();

    // --- how they are
    /// Those that have not ended.
    std::size_t running() const;
    /// Each is over (Command::is_over()).
    bool are_over() const;

    // --- their way to another program in the server's process
    /// Counts a client that uses a command and comes back when its connection breaks, for as long
    /// as what it returns lives.
    std::shared_ptr<void> attach() const { return attached_; }
    std::size_t attached() const { return static_cast<std::size_t>(attached_.use_count()) - 1; }
    /// Why they cannot pass, for people.
    std::optional<std::string> find_obstacle() const;
    /// About what pass_on() passes, in bytes.
    std::size_t passed_bytes() const;
    /// All of them, as they run. Precondition: no obstacle, and no start is under way.
    PassedCommands pass_on();
    /// The first commands of this table. kSystem: the ends of one cannot be watched.
    Status go_on(PassedCommands passed);

 private:
    struct Entry {
        std::shared_ptr<Command> command;
        std::shared_ptr<session::WorkerStart> start;
        std::shared_ptr<Completion<Status>> born;
        bool forget = false;  // as soon as it has ended
    };

    Result<sandbox::WorkerSpec> make_spec(const CommandOrder& order) const;
    Status check_start(const CommandOrder& order) const;
    Entry* find_entry(const std::string& id);
    Result<Entry*> find_running(const std::string& id);
    void finish(const std::string& id, CommandEnd end);
    void finish_all(const CommandEnd& end);
    void forget(const std::string& id);
    void note_output(std::size_t bytes);
    void resume_reading();

    boost::asio::io_context& io_;
    const Hooks hooks_;
    const KeepAlive keep_session_;
    std::vector<Entry> entries_;     // as they were started
    std::deque<std::string> ended_;  // ids, as they have ended
    OutputRation ration_;
    Alarm next_period_;
    const std::shared_ptr<bool> attached_ = std::make_shared<bool>(true);
    bool closed_ = false;
};

}  // namespace cellkeep::process
