// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/process/command_input.hpp"

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace cellkeep::process {

Result<std::shared_ptr<CommandInput>> CommandInput::create(
    boost::asio::io_context& io, UniqueFd write_end, std::function<void()> on_taken) {
    std::shared_ptr<CommandInput> input(new CommandInput(io, std::move(on_taken)));
    boost::system::error_code error;
    input->pipe_.assign(write_end.get(), error);
    if (error) {
        return Error(ErrorCode::kSystem, "watch an input pipe: " + error.message());
    }
    (void)write_end.release();
    return input;
}

Result<std::shared_ptr<CommandInput>> CommandInput::go_on(
    boost::asio::io_context& io,
    UniqueFd write_end,
    std::string waiting,
    bool finishing,
    std::function<void()> on_taken) {
    if (!write_end) {
        std::shared_ptr<CommandInput> closed(new CommandInput(io, std::move(on_taken)));
        closed->finishing_ = finishing;
        closed->closed_ = true;
        return closed;
    }
    BOOST_OUTCOME_TRY(auto input, create(io, std::move(write_end), std::move(on_taken)));
    input->pending_ = std::move(waiting);
    input->finishing_ = finishing;
    input->flush();
    return input;
}

Status CommandInput::write(std::string_view text) {
    if (is_finished()) {
        return Error(ErrorCode::kConflict, "stdin: it is closed");
    }
    if (text.size() > kInputBytesMax - waiting()) {
        return Error(
            ErrorCode::kLimitExceeded,
            "stdin: " + std::to_string(waiting()) + " bytes wait for the command already, and " +
                std::to_string(kInputBytesMax) + " may",
            "Send it again when the command has read.");
    }
    pending_.erase(0, std::exchange(taken_, 0));
    pending_ += text;
    flush();
    if (closed_) {
        return Error(ErrorCode::kConflict, "stdin: no process of the command reads it any more");
    }
    return ok();
}

void CommandInput::finish() {
    finishing_ = true;
    if (waiting() == 0) {
        close();
    }
}

std::string CommandInput::take_waiting() {
    return std::exchange(pending_, {}).substr(std::exchange(taken_, 0));
}

UniqueFd CommandInput::pass_on() {
    if (std::exchange(closed_, true)) {
        return {};
    }
    return UniqueFd(pipe_.release());
}

void CommandInput::close() {
    if (std::exchange(closed_, true)) {
        return;
    }
    pending_ = {};
    taken_ = 0;
    boost::system::error_code ignored;  // closing a descriptor that we own cannot fail usefully
    pipe_.close(ignored);
}

void CommandInput::flush() {
    if (waiting() > 0) {
        const ssize_t took =
            ::write(pipe_.native_handle(), pending_.data() + taken_, pending_.size() - taken_);
        if (took < 0 && errno != EAGAIN && errno != EINTR) {
            close();  // EPIPE: no process inside has the other end
            return;
        }
        taken_ += took > 0 ? static_cast<std::size_t>(took) : 0;
    }
    if (waiting() > 0) {
        wait_writable();
        return;
    }
    pending_ = {};
    taken_ = 0;
    if (finishing_) {
        close();
    }
}

void CommandInput::wait_writable() {
    if (std::exchange(waiting_, true)) {
        return;
    }
    pipe_.async_wait(
        boost::asio::posix::stream_descriptor::wait_write,
        [self = shared_from_this()](const boost::system::error_code& error) {
            self->waiting_ = false;
            if (!error && !self->closed_) {
                self->flush();
            }
            if (!self->closed_ && self->on_taken_) {
                self->on_taken_();
            }
        });
}

}  // namespace cellkeep::process
