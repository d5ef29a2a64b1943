// SPDX-License-Identifier: Apache-2.0
//
// A descriptor that other programs share has the flags again that it had, when this is destroyed:
// Asio makes what it waits for non-blocking, for all of them. Not movable.
#pragma once

#include <fcntl.h>

namespace cellkeep::cli {

class KeepFlags {
 public:
    explicit KeepFlags(int fd) : fd_(fd), flags_(::fcntl(fd, F_GETFL)) {}
    KeepFlags(const KeepFlags&) = delete;
    KeepFlags& operator=(const KeepFlags&) = delete;
    ~KeepFlags() {
        if (flags_ >= 0) {
            (void)::fcntl(fd_, F_SETFL, flags_);  // Ignored: nothing to do about it at the end.
        }
    }

 private:
    int fd_;
    int flags_;
};

}  // namespace cellkeep::cli
