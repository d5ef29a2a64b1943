// SPDX-License-Identifier: Apache-2.0
//
// The SIGINTs of this process, read from a signalfd(2). SIGINT is blocked, so that none ends the
// process or a system call. One thread.
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

#include <utility>

namespace cellkeep::kernels::driver {

class InterruptSignals {
 public:
    /// Blocks SIGINT in this thread, and so in the threads that it starts later.
    static Result<InterruptSignals> block();

    /// Readable while a SIGINT is pending.
    int fd() const { return fd_.get(); }
    /// Takes every pending SIGINT. Returns whether there was one. Does not block.
    bool drain() const;

 private:
    explicit InterruptSignals(UniqueFd fd) : fd_(std::move(fd)) {}

    UniqueFd fd_;
};

}  // namespace cellkeep::kernels::driver
