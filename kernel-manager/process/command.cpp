// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/process/command.hpp"

#include "protocol/support/syscall.hpp"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace cellkeep::process {

using std::chrono::system_clock;

namespace {

/// Ctrl-D, unless a program has chosen another (VEOF, termios(3)).
constexpr std::string_view kEndOfFile = "\x04";

}  // namespace

Result<std::shared_ptr<Command>> Command::create(
    boost::asio::io_context& io,
    std::string id,
    const CommandOrder& order,
    sandbox::WorkerSpec& spec,
    OnOutput on_output) {
    std::shared_ptr<Command> command(
        new Command(std::move(id), order, spec.working_directory, std::move(on_output)));
    BOOST_OUTCOME_TRY(
        order.terminal ? command->make_terminal_pair(io, order.terminal->size, spec)
                       : command->make_pipes(io, order, spec));
    command->stdout_->start();
    if (command->stderr_) {
        command->stderr_->start();
    }
    return command;
}

Status Command::make_pipes(
    boost::asio::io_context& io, const CommandOrder& order, sandbox::WorkerSpec& spec) {
    BOOST_OUTCOME_TRY(auto out, make_pipe());
    BOOST_OUTCOME_TRY(auto err, make_pipe());
    BOOST_OUTCOME_TRY(stdout_, watch(io, std::move(out.read_end), Stream::kStdout));
    BOOST_OUTCOME_TRY(stderr_, watch(io, std::move(err.read_end), Stream::kStderr));
    if (order.open_input) {
        BOOST_OUTCOME_TRY(auto in, make_pipe());
        BOOST_OUTCOME_TRY(set_nonblocking(in.write_end.get()));
        BOOST_OUTCOME_TRY(
            input_, CommandInput::create(io, std::move(in.write_end), [this] { tell(); }));
        spec.stdin_fd = std::move(in.read_end);
    }
    spec.stdout_fd = std::move(out.write_end);
    spec.stderr_fd = std::move(err.write_end);
    return ok();
}

/// Reading, writing and the size have a descriptor each: what watches one may close it.
Status Command::make_terminal_pair(
    boost::asio::io_context& io, TerminalSize size, sandbox::WorkerSpec& spec) {
    BOOST_OUTCOME_TRY(auto pair, make_terminal(size));
    controller_ = std::move(pair.controller);
    UniqueFd reading(::fcntl(controller_.get(), F_DUPFD_CLOEXEC, 0));
    UniqueFd writing(::fcntl(controller_.get(), F_DUPFD_CLOEXEC, 0));
    if (!reading || !writing) {
        return Error::from_errno(errno, "fcntl(F_DUPFD_CLOEXEC)");
    }
    BOOST_OUTCOME_TRY(stdout_, watch(io, std::move(reading), Stream::kStdout));
    BOOST_OUTCOME_TRY(input_, CommandInput::create(io, std::move(writing), [this] { tell(); }));
    info_.terminal = size;
    spec.terminal_fd = std::move(pair.terminal);
    return ok();
}

Command::Command(
    std::string id, const CommandOrder& order, std::string directory, OnOutput on_output)
    : on_output_(std::move(on_output)), when_full_(order.when_full), awaited_(order.awaited) {
    info_.id = std::move(id);
    info_.label = order.label;
    info_.argv = order.argv;
    info_.directory = std::move(directory);
    info_.started_at = system_clock::now();
}

bool Command::is_over() const {
    const auto is_closed = [](const auto& pipe) { return !pipe || pipe->descriptor() < 0; };
    return info_.end && is_closed(stdout_) && is_closed(stderr_);
}

Command::~Command() {
    close();
}

Result<std::shared_ptr<session::OutputPipe>> Command::watch(
    boost::asio::io_context& io, UniqueFd read_end, Stream stream) {
    BOOST_OUTCOME_TRY(set_nonblocking(read_end.get()));
    return session::OutputPipe::create(
        io, std::move(read_end), [this, stream](std::string_view text) {
            take_text(stream, text);
        });
}

void Command::take_text(Stream stream, std::string_view text) {
    // What is left of a command that has ended may go on writing: it is read, so that it does not
    // stand still or die of it, and kept nowhere.
    if (!info_.end) {
        output_.append(stream, text);
        tell();
    }
    on_output_(text.size());
    update_reading();
}

CommandOutput::Next Command::read_after(std::uint64_t place) {
    read_ = std::max(read_, std::min(place, output_.total()));
    update_reading();
    return output_.after(place);
}

void Command::update_reading() {
    // What is left of a command that has ended is read and kept nowhere: nothing is full then.
    const bool full =
        when_full_ == WhenFull::kWait && !info_.end && output_.bytes_after(read_) > kUnreadBytesMax;
    const bool reads = !paused_ && !full;
    if (reads == reading_) {
        return;
    }
    reading_ = reads;
    for (const auto& pipe : {stdout_, stderr_}) {
        if (pipe && reads) {
            pipe->resume_reading();
        } else if (pipe) {
            pipe->pause_reading();
        }
    }
}

CommandInfo Command::info() const {
    CommandInfo info = info_;
    info.input_open = input_ != nullptr && !input_->is_finished();
    info.output_bytes = output_.total();
    info.output_kept_from = output_.first_kept();
    return info;
}

std::shared_ptr<void> Command::subscribe(std::function<void()> on_news) {
    const std::uint64_t number = ++last_listener_;
    listeners_.emplace(number, std::move(on_news));
    // Only the address matters to who holds it.
    return {&last_listener_, [this, number, alive = std::weak_ptr<bool>(alive_)](void*) {
                if (!alive.expired()) {
                    listeners_.erase(number);
                }
            }};
}

void Command::tell() {
    for (const auto& [number, on_news] : listeners_) {
        on_news();
    }
}

Status Command::write(std::string_view text) {
    if (input_ == nullptr) {
        return Error(
            ErrorCode::kConflict,
            "stdin: the command was started without an input",
            "Start it with \"stdin\": \"open\".");
    }
    return input_->write(text);
}

Status Command::finish_input() {
    if (has_terminal()) {
        return write(kEndOfFile);
    }
    BOOST_OUTCOME_TRY(write({}));
    input_->finish();
    return ok();
}

void Command::finish(CommandEnd end) {
    if (info_.end) {
        return;
    }
    drain();
    for (const auto& pipe : {stdout_, stderr_}) {
        if (pipe) {
            pipe->hand_out_rest();
        }
    }
    info_.end = std::move(end);
    info_.ended_at = system_clock::now();
    if (has_terminal()) {
        close();  // what still has the terminal is hung up on, as when a window is closed
    } else if (input_) {
        input_->close();
    }
    update_reading();
    tell();
}

void Command::drain() {
    if (!has_terminal() || !stdout_) {
        for (const auto& pipe : {stdout_, stderr_}) {
            if (pipe) {
                pipe->drain();
            }
        }
        return;
    }
    // poll(2) brings up what is still on its way, some kilobytes at a time.
    pollfd watched{controller_.get(), POLLIN, 0};
    for (int i = 0;
         i<kTerminalDrainsMax&& ::poll(&watched, 1, 0)> 0 && (watched.revents & POLLIN) != 0;
         ++i) {
        stdout_->drain();
    }
}

Status Command::resize(TerminalSize size) {
    if (!has_terminal()) {
        return Error(ErrorCode::kConflict, "resize: the process has no terminal");
    }
    BOOST_OUTCOME_TRY(set_terminal_size(controller_.get(), size));
    info_.terminal = size;
    return ok();
}

void Command::close() {
    for (const auto& pipe : {stdout_, stderr_}) {
        if (pipe) {
            pipe->close();
        }
    }
    if (input_) {
        input_->close();
    }
    controller_.reset();
}

void Command::pause_reading() {
    paused_ = true;
    update_reading();
}

void Command::resume_reading() {
    paused_ = false;
    update_reading();
}

}  // namespace cellkeep::process
