// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/zmq/file_watch.hpp"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

namespace cellkeep::jupyter {
namespace {

/// Some two hundred events of names as long as ours.
constexpr std::size_t kReadBytes = 16 * 1024;

/// What the kernel calls the descriptor of inotify_init1(2).
constexpr const char* kWatchDescriptor = "anon_inode:inotify";

Error unavailable(const char* call) {
    return {ErrorCode::kUnavailable, Error::from_errno(errno, call).message()};
}

}  // namespace

Result<std::shared_ptr<FileWatch>> FileWatch::create(
    boost::asio::io_context& io, const std::string& directory, Events events) {
    UniqueFd fd(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    if (!fd) {
        return unavailable("inotify_init1");
    }
    if (::inotify_add_watch(fd.get(), directory.c_str(), IN_OPEN | IN_ONLYDIR) < 0) {
        return unavailable("inotify_add_watch");
    }
    return begin(io, std::move(fd), std::move(events));
}

Result<std::shared_ptr<FileWatch>> FileWatch::go_on(
    boost::asio::io_context& io, UniqueFd passed, Events events) {
    std::error_code failed;
    const auto kind =
        std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(passed.get()), failed);
    if (failed || kind != kWatchDescriptor) {
        return Error(ErrorCode::kInvalidArgument, "a passed descriptor watches no files");
    }
    return begin(io, std::move(passed), std::move(events));
}

Result<std::shared_ptr<FileWatch>> FileWatch::begin(
    boost::asio::io_context& io, UniqueFd fd, Events events) {
    const auto watch = std::make_shared<FileWatch>(Key(), io, std::move(events));
    boost::system::error_code error;
    watch->descriptor_.assign(fd.get(), error);
    if (error) {
        return Error(ErrorCode::kUnavailable, "watch files: " + error.message());
    }
    (void)fd.release();  // the descriptor's now
    watch->wait();
    return watch;
}

FileWatch::FileWatch(Key /*key*/, boost::asio::io_context& io, Events events)
    : descriptor_(io), events_(std::move(events)) {}

void FileWatch::close() {
    boost::system::error_code ignored;  // It was only ever read.
    descriptor_.close(ignored);
}

UniqueFd FileWatch::pass_on() {
    return descriptor_.is_open() ? UniqueFd(descriptor_.release()) : UniqueFd();
}

void FileWatch::wait() {
    descriptor_.async_wait(
        boost::asio::posix::stream_descriptor::wait_read,
        [weak = weak_from_this()](const boost::system::error_code& error) {
            const std::shared_ptr<FileWatch> self = weak.lock();
            if (self == nullptr || error) {
                return;
            }
            self->drain();
            if (self->descriptor_.is_open()) {
                self->wait();
            }
        });
}

/// One buffer in one turn: who opens files without end waits for the sessions, not they for them.
void FileWatch::drain() {
    alignas(inotify_event) std::array<char, kReadBytes> buffer{};
    const ssize_t got = ::read(descriptor_.native_handle(), buffer.data(), buffer.size());
    if (got < 0) {
        if (errno != EAGAIN && errno != EINTR) {
            events_.on_lost();
        }
        return;
    }
    for (std::size_t at = 0; at < static_cast<std::size_t>(got) && descriptor_.is_open();) {
        inotify_event event{};
        std::memcpy(&event, buffer.data() + at, sizeof(event));
        const char* name = buffer.data() + at + sizeof(event);
        at += sizeof(event) + event.len;
        if ((event.mask & IN_Q_OVERFLOW) != 0) {
            events_.on_lost();
        } else if (event.len > 0) {  // else the directory itself
            // The name is padded with NUL bytes to `len`.
            events_.on_opened({name, ::strnlen(name, event.len)});
        }
    }
}

}  // namespace cellkeep::jupyter
