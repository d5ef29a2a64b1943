// SPDX-License-Identifier: Apache-2.0
//
// What a command is given to read: the writing end of its descriptor 0, and at most kInputBytesMax
// that it has not taken yet. Never blocks: a command that does not read costs that much memory and
// nothing else. io_context thread only.
#pragma once

#include "kernel-manager/process/limits.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace cellkeep::process {

class CommandInput : public std::enable_shared_from_this<CommandInput> {
 public:
    /// The descriptor must be non-blocking. SIGPIPE must be ignored. on_taken, if it is one, hears
    /// that the command has taken something that waited, until close().
    static Result<std::shared_ptr<CommandInput>> create(
        boost::asio::io_context& io, UniqueFd write_end, std::function<void()> on_taken = {});
    CommandInput(const CommandInput&) = delete;
    CommandInput& operator=(const CommandInput&) = delete;
    ~CommandInput() = default;

    /// One that another program in the server's process had. No descriptor: it is closed.
    static Result<std::shared_ptr<CommandInput>> go_on(
        boost::asio::io_context& io,
        UniqueFd write_end,
        std::string waiting,
        bool finishing,
        std::function<void()> on_taken);

    /// All of the text, or nothing of it: kLimitExceeded if it does not fit behind what waits,
    /// kConflict if the input is closed, on either side, or is to be.
    Status write(std::string_view text);
    /// After what waits. Idempotent.
    void finish();
    /// At once; what waits is lost. Idempotent.
    void close();

    /// It takes no more text.
    bool is_finished() const { return finishing_ || closed_; }
    std::size_t waiting() const { return pending_.size() - taken_; }

    /// What waits, and then no more of it here.
    std::string take_waiting();
    /// It is to end behind what waits.
    bool is_finishing() const { return finishing_; }
    /// The writing end, for another program; this is closed then. None if it is closed already.
    UniqueFd pass_on();

 private:
    CommandInput(boost::asio::io_context& io, std::function<void()> on_taken)
        : pipe_(io), on_taken_(std::move(on_taken)) {}
    void flush();
    void wait_writable();

    boost::asio::posix::stream_descriptor pipe_;
    const std::function<void()> on_taken_;
    std::string pending_;
    std::size_t taken_ = 0;  // of it
    bool waiting_ = false;
    bool finishing_ = false;
    bool closed_ = false;
};

}  // namespace cellkeep::process
