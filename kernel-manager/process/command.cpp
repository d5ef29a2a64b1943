// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/process/command.hpp"

#include "protocol/support/syscall.hpp"

#include <utility>

namespace cellkeep::process {

using std::chrono::system_clock;

Result<std::shared_ptr<Command>> Command::create(
    boost::asio::io_context& io,
    std::string id,
    const CommandOrder& order,
    sandbox::WorkerSpec& spec,
    OnOutput on_output) {
    std::shared_ptr<Command> command(
        new Command(std::move(id), order, spec.working_directory, std::move(on_output)));
    BOOST_OUTCOME_TRY(auto out, make_pipe());
    BOOST_OUTCOME_TRY(auto err, make_pipe());
    BOOST_OUTCOME_TRY(
        command->stdout_, command->watch(io, std::move(out.read_end), Stream::kStdout));
    BOOST_OUTCOME_TRY(
        command->stderr_, command->watch(io, std::move(err.read_end), Stream::kStderr));
    if (order.open_input) {
        BOOST_OUTCOME_TRY(auto in, make_pipe());
        BOOST_OUTCOME_TRY(set_nonblocking(in.write_end.get()));
        BOOST_OUTCOME_TRY(command->input_, CommandInput::create(io, std::move(in.write_end)));
        spec.stdin_fd = std::move(in.read_end);
    }
    spec.stdout_fd = std::move(out.write_end);
    spec.stderr_fd = std::move(err.write_end);
    command->stdout_->start();
    command->stderr_->start();
    return command;
}

Command::Command(
    std::string id, const CommandOrder& order, std::string directory, OnOutput on_output)
    : on_output_(std::move(on_output)) {
    info_.id = std::move(id);
    info_.label = order.label;
    info_.argv = order.argv;
    info_.directory = std::move(directory);
    info_.started_at = system_clock::now();
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
    BOOST_OUTCOME_TRY(write({}));
    input_->finish();
    return ok();
}

void Command::finish(CommandEnd end) {
    if (info_.end) {
        return;
    }
    stdout_->drain();
    stderr_->drain();
    info_.end = std::move(end);
    info_.ended_at = system_clock::now();
    if (input_) {
        input_->close();
    }
    tell();
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
}

void Command::pause_reading() {
    stdout_->pause_reading();
    stderr_->pause_reading();
}

void Command::resume_reading() {
    stdout_->resume_reading();
    stderr_->resume_reading();
}

}  // namespace cellkeep::process
