// SPDX-License-Identifier: Apache-2.0
//
// The owner of one file descriptor. Functions that take ownership take UniqueFd, never int.
#pragma once

#include <unistd.h>

#include <utility>

namespace cellkeep {

class [[nodiscard]] UniqueFd {
 public:
    UniqueFd() = default;
    /// Takes ownership of fd; -1 means "none".
    explicit UniqueFd(int fd) noexcept : fd_(fd) {}
    UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    UniqueFd& operator=(UniqueFd&& other) noexcept {
        if (this != &other) {
            reset(std::exchange(other.fd_, -1));
        }
        return *this;
    }
    UniqueFd(const UniqueFd&) = delete;
    UniqueFd& operator=(const UniqueFd&) = delete;
    ~UniqueFd() { reset(); }

    int get() const noexcept { return fd_; }
    bool valid() const noexcept { return fd_ >= 0; }
    explicit operator bool() const noexcept { return valid(); }

    /// Gives ownership to the caller.
    [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }

    void reset(int fd = -1) noexcept {
        const int old = std::exchange(fd_, fd);
        if (old >= 0) {
            // Ignored: on Linux the descriptor is gone even if close reports an error (close(2)).
            (void)::close(old);
        }
    }

 private:
    int fd_ = -1;
};

}  // namespace cellkeep
