// SPDX-License-Identifier: Apache-2.0
//
// Reads one of a kernel's output pipes (its descriptor 1 or 2): what C code and subprocesses print.
// Text is handed out in whole UTF-8 characters, at most limits::kStreamChunkBytesMax bytes at a
// time. Owns the read end. io_context thread only.
#pragma once

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

namespace cellkeep::session {

/// How many bytes at the end of text are the beginning of a UTF-8 character that is not whole yet
/// (0 to 3). Bytes that can never become a character count as whole.
std::size_t incomplete_utf8_suffix(std::string_view text);
/// The most that it says.
inline constexpr std::size_t kUtf8RestBytesMax = 3;

class OutputPipe : public std::enable_shared_from_this<OutputPipe> {
 public:
    using OnText = std::function<void(std::string_view)>;

    /// The descriptor must be non-blocking.
    static Result<std::shared_ptr<OutputPipe>> create(
        boost::asio::io_context& io, UniqueFd read_end, OnText on_text);

    OutputPipe(const OutputPipe&) = delete;
    OutputPipe& operator=(const OutputPipe&) = delete;
    ~OutputPipe() = default;

    /// Called each time before the pipe is read because something came; it may close this.
    void set_before_read(std::function<void()> before_read) {
        before_read_ = std::move(before_read);
    }
    void start();
    /// Hands out what is in the pipe at this moment, and no more, so that a writer that never stops
    /// cannot keep us here. The rest of a character that was cut stays for later.
    void drain();
    /// Hands out the beginning of a character whose rest has not come: its writer has ended.
    void hand_out_rest();
    /// For poll(2). -1: closed.
    int descriptor() { return pipe_.native_handle(); }
    void pause_reading();
    void resume_reading();
    /// It is read, and no half of a character is held here.
    bool is_at_rest() const { return !closed_ && !paused_ && kept_ == 0; }
    /// The beginning of a character whose rest has not come, which is held here.
    std::string_view rest() const { return {buffer_.data(), kept_}; }
    /// The read end, for another program. This is closed then and hands out nothing more, so the
    /// caller takes rest() first. No descriptor if it is closed already.
    UniqueFd pass_on();
    /// Before start(): what rest() was in another program, at most kUtf8RestBytesMax.
    void go_on(std::string_view rest);
    void close();

 private:
    OutputPipe(boost::asio::io_context& io, OnText on_text);
    void wait_readable();
    /// Bytes read; 0 if the pipe is empty or closed.
    std::size_t read_some(std::size_t bytes_max);

    boost::asio::posix::stream_descriptor pipe_;
    OnText on_text_;
    std::function<void()> before_read_;
    std::string buffer_;  // bytes of an incomplete character at the front, then room
    std::size_t kept_ = 0;
    bool paused_ = false;
    bool waiting_ = false;
    bool closed_ = false;
};

}  // namespace cellkeep::session
