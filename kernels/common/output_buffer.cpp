// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/output_buffer.hpp"

#include "protocol/json_text.hpp"

#include <signal.h>

#include <system_error>
#include <utility>

namespace cellkeep::kernels {

namespace {

/// The length of the longest prefix of at most bytes_max that does not cut a UTF-8 character.
std::size_t prefix_of_text(std::string_view text, std::size_t bytes_max) {
    if (text.size() <= bytes_max) {
        return text.size();
    }
    const auto continues = [&](std::size_t index) {
        return (static_cast<unsigned char>(text[index]) & 0xC0U) == 0x80U;
    };
    std::size_t size = bytes_max;
    while (size > 1 && continues(size)) {
        --size;
    }
    return size;
}

/// Blocks all signals of the calling thread while in scope. A thread inherits the mask of the one
/// that starts it (pthread_sigmask(3)).
class BlockedSignals {
 public:
    BlockedSignals() {
        sigset_t all{};
        (void)sigfillset(&all);
        (void)pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~BlockedSignals() { (void)pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    BlockedSignals(const BlockedSignals&) = delete;
    BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
    sigset_t before_{};
};

}  // namespace

AfterWrite OutputBuffer::write(StreamName name, std::string_view text) {
    if (text.empty()) {
        return AfterWrite::kNothing;
    }
    const std::lock_guard lock(mutex_);
    const bool was_empty = segments_.empty();
    const bool ends_line = text.back() == '\n';
    // Asking for the time is most of a short write, so not without need.
    const Clock::time_point now = was_empty || ends_line ? Clock::now() : Clock::time_point();
    if (was_empty) {
        first_write_ = now;
    }
    if (was_empty || segments_.back().name != name) {
        segments_.push_back({name, std::string(text)});
    } else {
        segments_.back().text.append(text);
    }
    bytes_ += text.size();
    if (bytes_ >= kOutputBytes || (ends_line && now - last_sent_ >= kOutputDelay)) {
        return AfterWrite::kFlush;
    }
    if (!cell_runs_) {
        return was_empty ? AfterWrite::kSchedule : AfterWrite::kNothing;
    }
    if (was_empty) {
        start_thread();
        if (!thread_.joinable()) {
            return AfterWrite::kFlush;
        }
        wake_.notify_one();
    }
    return AfterWrite::kNothing;
}

void OutputBuffer::flush() {
    const std::lock_guard order(flush_mutex_);
    std::vector<Segment> taken;
    {
        const std::lock_guard lock(mutex_);
        taken.swap(segments_);
        bytes_ = 0;
        if (!taken.empty()) {
            last_sent_ = Clock::now();
        }
    }
    for (const Segment& segment : taken) {
        std::string_view rest = segment.text;
        while (!rest.empty()) {
            const std::size_t size = prefix_of_text(rest, kStreamTextBytesMax);
            send(segment.name, rest.substr(0, size));
            rest.remove_prefix(size);
        }
    }
}

void OutputBuffer::send(StreamName name, std::string_view text) {
    std::string json(
        name == StreamName::kStdout ? R"({"name":"stdout","text":)"
                                    : R"({"name":"stderr","text":)");
    protocol::append_json_string(json, text);
    json += '}';
    // Ignored: the only failure is a peer that is gone, and then no process reads output.
    (void)outbox_.publish({.type = "stream", .content = json});
}

void OutputBuffer::begin_cell() {
    const std::lock_guard lock(mutex_);
    cell_runs_ = true;
    stop_ = false;
}

void OutputBuffer::end_cell() {
    std::thread ended;
    {
        const std::lock_guard lock(mutex_);
        cell_runs_ = false;
        stop_ = true;
        ended.swap(thread_);
        wake_.notify_one();
    }
    if (ended.joinable()) {
        ended.join();
    }
    flush();
}

void OutputBuffer::start_thread() {
    if (thread_.joinable()) {
        return;
    }
    const BlockedSignals blocked;
    try {
        thread_ = std::thread([this] { keep_delay(); });
    } catch (const std::system_error&) {
        // Ignored: the session is at its limit of processes. write() has its caller flush, and the
        // next write that needs the thread tries again.
    }
}

OutputBuffer::Clock::time_point OutputBuffer::due() const {
    // When the line's end comes later than kOutputDelay, write() has its caller flush: nothing was
    // sent since. So the thread need not be woken for it.
    const bool ends_line = segments_.back().text.ends_with('\n');
    return first_write_ + (ends_line ? kOutputDelay : kLineDelay);
}

void OutputBuffer::keep_delay() {
    std::unique_lock lock(mutex_);
    while (!stop_) {
        if (segments_.empty()) {
            wake_.wait(lock);
            continue;
        }
        const Clock::time_point now = Clock::now();
        if (now < due()) {
            // What it holds may end a line by then: so it looks after the shorter delay, too.
            const Clock::time_point first = first_write_ + kOutputDelay;
            (void)wake_.wait_until(lock, now < first ? first : due());
            continue;
        }
        lock.unlock();
        flush();
        lock.lock();
    }
}

}  // namespace cellkeep::kernels
