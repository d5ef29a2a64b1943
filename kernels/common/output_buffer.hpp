// SPDX-License-Identifier: Apache-2.0
//
// Joins small writes to stdout and stderr into few stream messages, in the order of the writes.
// Text is sent at once when it ends a line and nothing was sent for kOutputDelay; else together,
// when kOutputBytes have gathered, kOutputDelay after the first byte, before any other message, and
// at the end of the cell. Text that does not end a line waits longer, for kLineDelay: print() in
// Python writes a line and its end one after the other, and on a busy machine other processes run
// in between. The delays are kept by a thread that lives only while a cell runs (started by the
// first write that needs it, joined by end_cell; if it cannot start, writers flush), so that an
// idle kernel can fork. The thread blocks all signals: SIGINT is for the interpreter's thread.
// write() and flush() may be called from any thread; begin_cell() and end_cell() from the main one.
#pragma once

#include "kernels/common/outbox.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace cellkeep::kernels {

inline constexpr std::size_t kOutputBytes = 32ULL << 10U;
/// Longer text of one write becomes several messages.
inline constexpr std::size_t kStreamTextBytesMax = 1ULL << 20U;
inline constexpr std::chrono::milliseconds kOutputDelay{5};
/// Of text whose line has not ended.
inline constexpr std::chrono::milliseconds kLineDelay{50};

enum class StreamName { kStdout, kStderr };

/// What the writer has to do next. It is split from the writing so that a language with a global
/// lock can let go of it before it waits for the link.
enum class AfterWrite {
    kNothing,
    kFlush,     // call flush() now
    kSchedule,  // no cell runs, so no timer keeps the delay: call flush() soon
};

class OutputBuffer {
 public:
    explicit OutputBuffer(Outbox& outbox) : outbox_(outbox) {}
    ~OutputBuffer() { end_cell(); }
    OutputBuffer(const OutputBuffer&) = delete;
    OutputBuffer& operator=(const OutputBuffer&) = delete;

    /// Appends. Never blocks on the link.
    AfterWrite write(StreamName name, std::string_view text);

    /// Sends what is held, in order. Blocks while the link is full (that is the back-pressure).
    void flush();

    /// The user's code runs from now on: a cell, or the handler of a comm message.
    void begin_cell();
    /// Joins the thread and flushes.
    void end_cell();

 private:
    using Clock = std::chrono::steady_clock;
    struct Segment {
        StreamName name;
        std::string text;
    };

    void send(StreamName name, std::string_view text);
    void start_thread();  // Precondition: mutex_ is held.
    void keep_delay();
    /// When what is held has to be sent. Precondition: mutex_ is held, and something is held.
    Clock::time_point due() const;

    Outbox& outbox_;
    std::mutex flush_mutex_;  // Keeps the order of concurrent flushes. Taken before mutex_.
    std::mutex mutex_;
    std::condition_variable wake_;
    std::vector<Segment> segments_;
    std::size_t bytes_ = 0;
    Clock::time_point first_write_;
    Clock::time_point last_sent_;
    bool cell_runs_ = false;
    bool stop_ = false;
    std::thread thread_;
};

}  // namespace cellkeep::kernels
