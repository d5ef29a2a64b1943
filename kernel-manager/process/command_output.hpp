// SPDX-License-Identifier: Apache-2.0
//
// What a command has written, the newest kOutputBytesMax of it, for readers that come and go. A
// place in it is a number of bytes since the command's start, of both streams together, in the
// order in which the server read them: a reader says how much it has and gets what follows, and
// learns how many bytes are no longer there. Not thread-safe.
#pragma once

#include "kernel-manager/process/limits.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace cellkeep::process {

enum class Stream { kStdout, kStderr };

class CommandOutput {
 public:
    explicit CommandOutput(std::size_t bytes_max = kOutputBytesMax) : bytes_max_(bytes_max) {}

    void append(Stream stream, std::string_view text);
    /// Of which the bytes before a place are no longer there. Before the first append().
    void begin_at(std::uint64_t place) { total_ = place; }

    struct Next {
        Stream stream = Stream::kStdout;
        std::string_view text;     // empty: there is no more; valid until append()
        std::uint64_t end = 0;     // the place behind it
        std::uint64_t missed = 0;  // bytes before it that are no longer kept
    };
    /// What follows a place. One that has not been reached has nothing behind it.
    Next after(std::uint64_t place) const;

    /// Bytes that were written so far.
    std::uint64_t total() const { return total_; }
    /// The place of the first byte that is kept.
    std::uint64_t first_kept() const;
    /// Of memory that it keeps.
    std::size_t bytes() const { return bytes_; }
    /// Of memory that it keeps behind a place, to a piece exact.
    std::size_t bytes_after(std::uint64_t place) const;

 private:
    struct Piece {
        Stream stream = Stream::kStdout;
        std::uint64_t begin = 0;
        std::string text;
        std::uint64_t cost_before = 0;  // of all pieces there ever were before it
    };
    static std::size_t cost(const Piece& piece) { return sizeof piece + piece.text.capacity(); }
    void add(Stream stream, std::string_view text);
    void drop_oldest();
    /// The piece that holds what follows a place, or the end.
    std::deque<Piece>::const_iterator find(std::uint64_t place) const;

    std::size_t bytes_max_;
    std::deque<Piece> pieces_;
    std::size_t bytes_ = 0;
    std::uint64_t total_ = 0;
    std::uint64_t cost_total_ = 0;  // of all pieces there ever were
};

}  // namespace cellkeep::process
