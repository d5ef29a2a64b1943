// SPDX-License-Identifier: Apache-2.0
//
// One command that runs in a session's sandbox beside the interpreters, or has run: what it was,
// what it wrote, how it ended. Owns the server's ends of its pipes. CommandTable starts and ends
// it; readers may hold it for longer. io_context thread only.
#pragma once

#include "kernel-manager/output/output_pipe.hpp"
#include "kernel-manager/process/command_input.hpp"
#include "kernel-manager/process/command_output.hpp"
#include "kernel-manager/process/terminal.hpp"
#include "protocol/support/result.hpp"
#include "sandbox/sandbox.hpp"

#include <boost/asio/io_context.hpp>

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::process {

struct PassedCommand;

/// What happens to output for which there is no room.
enum class WhenFull {
    kDrop,  // the oldest goes
    kWait,  // the command waits in its write until a reader has come so far, as at a full pipe
};

struct CommandOrder {
    /// A program without a slash at its beginning is looked up in PATH, or relative to the
    /// directory, by the sandbox's shell.
    std::vector<std::string> argv;
    /// Besides the session's own.
    std::map<std::string, std::string> env;
    /// Absolute and inside, or relative to the workspace. Empty: the session's.
    std::string directory;
    bool open_input = false;  // else descriptor 0 is /dev/null
    std::optional<std::string> label;
    /// It has this terminal as its descriptors 0 to 2, open_input or not, and TERM.
    struct Terminal {
        TerminalSize size;
        std::string kind = "xterm-256color";
    };
    std::optional<Terminal> terminal = std::nullopt;
    WhenFull when_full = WhenFull::kDrop;
    /// Somebody in this program waits for its end and tells no other program of it.
    bool awaited = false;
};

struct CommandEnd {
    enum class Kind {
        kExited,        // status: its exit code
        kSignaled,      // status: the signal's number
        kFailed,        // it never became its program: failure says why
        kSessionEnded,  // with everything inside
    } kind = Kind::kExited;
    int status = 0;
    std::string failure;
};

/// A command as anyone may see it, now.
struct CommandInfo {
    std::string id;  // "prc_" and 24 hexadecimal digits
    std::optional<std::string> label;
    std::vector<std::string> argv;
    std::string directory;  // absolute, inside
    pid_t pid = 0;          // its number inside; 0: not known yet
    bool input_open = false;
    std::optional<TerminalSize> terminal;
    std::optional<CommandEnd> end;  // none: it runs
    std::chrono::system_clock::time_point started_at;
    std::chrono::system_clock::time_point ended_at;  // if it has ended
    std::uint64_t output_bytes = 0;
    std::uint64_t output_kept_from = 0;  // the first byte that is still kept
};

class Command {
 public:
    /// Called with the number of bytes that were read.
    using OnOutput = std::function<void(std::size_t)>;

    /// Makes the pipes. `spec` gets the command's ends of them. As make_pipe().
    static Result<std::shared_ptr<Command>> create(
        boost::asio::io_context& io,
        std::string id,
        const CommandOrder& order,
        sandbox::WorkerSpec& spec,
        OnOutput on_output);
    /// One that another program in the server's process had. kSystem: its ends cannot be watched.
    static Result<std::shared_ptr<Command>> go_on(
        boost::asio::io_context& io, PassedCommand passed, OnOutput on_output);
    Command(const Command&) = delete;
    Command& operator=(const Command&) = delete;
    ~Command();

    const std::string& id() const { return info_.id; }
    CommandInfo info() const;
    const CommandOutput& output() const { return output_; }
    /// What follows a place, for a reader that has all before it.
    CommandOutput::Next read_after(std::uint64_t place);
    const std::optional<CommandEnd>& end() const { return info_.end; }
    /// It has ended, and nothing that it left can write to its pipes.
    bool is_over() const;
    /// CommandOrder::awaited.
    bool is_awaited() const { return awaited_; }
    /// Bytes that it has not taken yet.
    std::size_t waiting_input() const { return input_ ? input_->waiting() : 0; }
    /// Calls back at each news, output, room for input or its end, for as long as what it returns
    /// lives. The callback may only take note.
    std::shared_ptr<void> subscribe(std::function<void()> on_news);

    // --- of CommandTable
    void note_born(pid_t pid) { info_.pid = pid; }
    /// kConflict if it was started without an input, and as CommandInput::write().
    Status write(std::string_view text);
    /// Without more to read; of a terminal: the character that means it.
    Status finish_input();
    /// kConflict if it has no terminal.
    Status resize(TerminalSize size);
    bool has_terminal() const { return info_.terminal.has_value(); }
    /// Takes what the pipes hold at this moment, and no output that comes later. Idempotent.
    void finish(CommandEnd end);
    /// No more is read or written.
    void close();
    /// What another program needs to go on; this one has nothing of it any more. What only the
    /// table knows is left as it is.
    PassedCommand pass_on();
    void pause_reading();
    void resume_reading();

 private:
    Command(std::string id, const CommandOrder& order, std::string directory, OnOutput on_output);
    Result<std::shared_ptr<session::OutputPipe>> watch(
        boost::asio::io_context& io, UniqueFd read_end, Stream stream);
    Status make_pipes(
        boost::asio::io_context& io, const CommandOrder& order, sandbox::WorkerSpec& spec);
    Status take_ends(boost::asio::io_context& io, PassedCommand& passed);
    Status make_terminal_pair(
        boost::asio::io_context& io, TerminalSize size, sandbox::WorkerSpec& spec);
    void drain();
    void take_text(Stream stream, std::string_view text);
    void tell();
    /// Reads its pipes, or does not, as pause_reading() and a reader that is behind demand.
    void update_reading();

    CommandInfo info_;
    const OnOutput on_output_;
    CommandOutput output_;
    const WhenFull when_full_;
    const bool awaited_;
    std::uint64_t read_ = 0;  // the furthest place that a reader has come to
    bool paused_ = false;     // by pause_reading()
    bool reading_ = true;
    std::shared_ptr<CommandInput> input_;          // null: it has none
    UniqueFd controller_;                          // of its terminal, for its size
    std::shared_ptr<session::OutputPipe> stdout_;  // or the terminal
    std::shared_ptr<session::OutputPipe> stderr_;  // null: it has a terminal
    std::map<std::uint64_t, std::function<void()>> listeners_;
    std::uint64_t last_listener_ = 0;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace cellkeep::process
