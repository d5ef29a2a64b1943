// SPDX-License-Identifier: Apache-2.0
//
// Lines between the supervisor and the process that has the cells' state (README.md). A line begins
// with a byte for its kind. In the other direction requests pass unchanged.
#pragma once

#include "protocol/support/unique_fd.hpp"

#include <sys/types.h>

#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace cellkeep::cpp {

/// What an interpreter process says.
enum class Word : char {
    kEvent = 'E',     // an event for the kernel, as it is
    kDone = 'D',      // the same, and the request is answered
    kFailed = 'F',    // a done event for when the process before the cell has taken over
    kAgain = 'A',     // the cell is to be run again from before it; JSON for the one that does
    kFallback = 'K',  // the process to go back to: its id, a space, how many threads would end
    kLine = 'L',      // the line of the cell that crashes
    kOverflow = 'O',  // the stack is used up: what the signal that follows means
};

/// Longest line either way; a display beyond it is refused before it is sent.
inline constexpr std::size_t kLineBytesMax = std::size_t{64} << 20U;

class Channel {
 public:
    /// `wake`: the descriptor that resumes a copy of the process (snapshot.hpp).
    Channel(UniqueFd socket, UniqueFd wake) : socket_(std::move(socket)), wake_(std::move(wake)) {
        take_over();
    }

    /// Blocks. Returns false at the end of the channel, after which no line can come.
    bool read_line(std::string& line);
    /// A line of `wake`, which only copies read.
    bool read_wake(std::string& line);
    /// Sends one whole line, from any thread. Returns false if the other end is closed, and in a
    /// process that a cell has forked, which is not the interpreter.
    bool say(Word word, std::string_view text);
    /// Makes this process the interpreter from now on. In a fork, frees a lock that another thread
    /// held at the fork.
    void take_over();
    bool is_ours() const;
    int fd() const { return socket_.get(); }

 private:
    UniqueFd socket_;
    UniqueFd wake_;
    std::string buffer_;
    std::size_t read_ = 0;  // of buffer_, how much was given out
    pid_t interpreter_ = 0;
    std::mutex* lock_ = nullptr;  // never freed: threads of cells may outlive everything
};

/// Writes all bytes to a blocking descriptor. Returns false if its reader is gone.
bool write_fully(int fd, std::string_view bytes);

}  // namespace cellkeep::cpp
