// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpp/process/channel.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>

namespace cellkeep::cpp {

namespace {
constexpr std::size_t kChannelReadBytes = 65536;
}

bool write_fully(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t count = ::write(fd, bytes.data(), bytes.size());
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return false;
        }
        bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
}

bool Channel::read_line(std::string& line) {
    std::size_t searched = read_;
    for (;;) {
        const std::size_t newline = buffer_.find('\n', searched);
        if (newline != std::string::npos) {
            line.assign(buffer_, read_, newline - read_);
            read_ = newline + 1;
            if (read_ == buffer_.size()) {
                buffer_.clear();
                read_ = 0;
            }
            return true;
        }
        searched = buffer_.size();
        std::array<char, kChannelReadBytes> bytes;
        const ssize_t count = ::read(socket_.get(), bytes.data(), bytes.size());
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0 || buffer_.size() > kLineBytesMax) {
            return false;
        }
        buffer_.append(bytes.data(), static_cast<std::size_t>(count));
    }
}

bool Channel::read_wake(std::string& line) {
    line.clear();
    for (char byte = 0;;) {
        const ssize_t count = ::read(wake_.get(), &byte, 1);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            return false;
        }
        if (byte == '\n') {
            return true;
        }
        line += byte;
    }
}

void Channel::take_over() {
    interpreter_ = ::getpid();
    lock_ = std::make_unique<std::mutex>().release();
}

bool Channel::is_ours() const {
    return ::getpid() == interpreter_;
}

bool Channel::say(Word word, std::string_view text) {
    if (!is_ours()) {
        return false;
    }
    std::string line;
    line.reserve(text.size() + 2);
    line += static_cast<char>(word);
    line += text;
    line += '\n';
    const std::lock_guard<std::mutex> held(*lock_);
    return write_fully(socket_.get(), line);
}

}  // namespace cellkeep::cpp
