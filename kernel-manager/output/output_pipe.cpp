// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/output/output_pipe.hpp"

#include "protocol/limits.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace cellkeep::session {

std::size_t incomplete_utf8_suffix(std::string_view text) {
    const std::size_t look_back = std::min(text.size(), kUtf8RestBytesMax);
    for (std::size_t back = 1; back <= look_back; ++back) {
        const auto byte = static_cast<unsigned char>(text[text.size() - back]);
        if ((byte & 0xC0U) == 0x80U) {
            continue;  // a continuation byte: the lead is further left
        }
        std::size_t length = 1;
        if ((byte & 0xE0U) == 0xC0U) {
            length = 2;
        } else if ((byte & 0xF0U) == 0xE0U) {
            length = 3;
        } else if ((byte & 0xF8U) == 0xF0U) {
            length = 4;
        }
        return length > back ? back : 0;
    }
    return 0;
}

Result<std::shared_ptr<OutputPipe>> OutputPipe::create(
    boost::asio::io_context& io, UniqueFd read_end, OnText on_text) {
    std::shared_ptr<OutputPipe> pipe(new OutputPipe(io, std::move(on_text)));
    boost::system::error_code error;
    pipe->pipe_.assign(read_end.get(), error);
    if (error) {
        return Error(ErrorCode::kSystem, "watch an output pipe: " + error.message());
    }
    (void)read_end.release();
    return pipe;
}

OutputPipe::OutputPipe(boost::asio::io_context& io, OnText on_text)
    : pipe_(io), on_text_(std::move(on_text)), buffer_(limits::kStreamChunkBytesMax, '\0') {}

void OutputPipe::start() {
    wait_readable();
}

void OutputPipe::drain() {
    if (closed_) {
        return;
    }
    const auto self = shared_from_this();
    int available = 0;
    if (::ioctl(pipe_.native_handle(), FIONREAD, &available) < 0) {
        return;  // cannot fail on a pipe that we own; nothing would be lost but order
    }
    auto left = static_cast<std::size_t>(std::max(available, 0));
    while (left > 0) {
        const std::size_t got = read_some(left);
        if (got == 0) {
            return;
        }
        left -= std::min(got, left);
    }
}

void OutputPipe::hand_out_rest() {
    if (const std::size_t rest = std::exchange(kept_, 0); rest > 0) {
        on_text_({buffer_.data(), rest});
    }
}

void OutputPipe::pause_reading() {
    paused_ = true;
}

void OutputPipe::resume_reading() {
    if (std::exchange(paused_, false)) {
        wait_readable();
    }
}

UniqueFd OutputPipe::pass_on() {
    if (std::exchange(closed_, true)) {
        return {};
    }
    kept_ = 0;
    return UniqueFd(pipe_.release());
}

void OutputPipe::go_on(std::string_view rest) {
    kept_ = rest.copy(buffer_.data(), kUtf8RestBytesMax);
}

void OutputPipe::close() {
    if (std::exchange(closed_, true)) {
        return;
    }
    boost::system::error_code ignored;  // closing a descriptor that we own cannot fail usefully
    pipe_.close(ignored);
}

void OutputPipe::wait_readable() {
    if (waiting_ || closed_ || paused_) {
        return;
    }
    waiting_ = true;
    pipe_.async_wait(
        boost::asio::posix::stream_descriptor::wait_read,
        [self = shared_from_this()](const boost::system::error_code& error) {
            self->waiting_ = false;
            if (error || self->closed_ || self->paused_) {
                return;
            }
            if (self->before_read_) {
                self->before_read_();
            }
            if (!self->closed_ && !self->paused_) {
                self->read_some(limits::kStreamChunkBytesMax);
                self->wait_readable();
            }
        });
}

std::size_t OutputPipe::read_some(std::size_t bytes_max) {
    if (closed_) {
        return 0;
    }
    const std::size_t room = std::min(bytes_max, buffer_.size() - kept_);
    const ssize_t got = ::read(pipe_.native_handle(), buffer_.data() + kept_, room);
    if (got <= 0) {
        const bool again = got < 0 && (errno == EAGAIN || errno == EINTR);
        if (!again) {
            close();  // end of file: every writer inside is gone
            hand_out_rest();
        }
        return 0;
    }
    const std::size_t total = kept_ + static_cast<std::size_t>(got);
    const std::size_t incomplete = incomplete_utf8_suffix({buffer_.data(), total});
    const std::size_t whole = total - incomplete;
    if (whole > 0) {
        on_text_({buffer_.data(), whole});
    }
    std::memmove(buffer_.data(), buffer_.data() + whole, incomplete);
    kept_ = incomplete;
    return static_cast<std::size_t>(got);
}

}  // namespace cellkeep::session
