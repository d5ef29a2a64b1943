// SPDX-License-Identifier: Apache-2.0
//
// The driver as a child process: its two pipes, its lines, its end (README.md, "Descriptors of a
// driver"). It dies with this process. A descriptor tells this process of the driver's end, so that
// one poll(2) waits for everything. One thread.
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::kernels::driver {

/// One event line, without its end. Room for what fits a frame of the kernel link.
inline constexpr std::size_t kEventBytesMax = 128UL << 20U;
/// How long a driver may take to end after its requests have.
inline constexpr std::chrono::seconds kEndGrace{2};

struct Command {
    std::vector<std::string> argv;           // argv[0] is found on PATH
    std::map<std::string, std::string> env;  // added to this process's own
};

class DriverProcess {
 public:
    /// kUnavailable names the program and why it cannot be started.
    static Result<DriverProcess> start(const Command& command);
    DriverProcess(DriverProcess&& other) noexcept;
    DriverProcess(const DriverProcess&) = delete;
    DriverProcess& operator=(const DriverProcess&) = delete;
    DriverProcess& operator=(DriverProcess&&) = delete;
    /// Kills it if it still runs, and reaps it.
    ~DriverProcess();

    // --- to wait for
    int events_fd() const { return events_.get(); }      // readable; -1 once it has ended
    int requests_fd() const { return requests_.get(); }  // writable, while has_unsent()
    int ended_fd() const { return pidfd_.get(); }        // readable when the process has ended

    /// Queues a line and writes what the pipe takes. A driver that is gone is noticed by its end.
    void send(std::string_view line);
    bool has_unsent() const { return !unsent_.empty(); }
    void send_more();

    enum class Read { kSome, kNothing, kEnd };
    /// What is there at this moment, up to a part of it; never blocks. kLimitExceeded: a line is
    /// longer than kEventBytesMax.
    Result<Read> read();
    /// Bytes that wait to be read.
    std::size_t available() const;
    /// The next whole line; valid until the next call of read() or next_line().
    std::optional<std::string_view> next_line();

    /// Fails only if the process is gone.
    void interrupt() const;
    void kill() const;
    /// As waitpid(2) reports it, once ended_fd() is readable.
    int reap();
    /// No more requests: waits for its end, reading and dropping what it says, and kills it after
    /// kEndGrace.
    void end();

 private:
    DriverProcess(pid_t pid, UniqueFd pidfd, UniqueFd requests, UniqueFd events);

    pid_t pid_ = -1;  // -1: reaped
    UniqueFd pidfd_;
    UniqueFd requests_;
    UniqueFd events_;
    std::string unsent_;
    std::vector<char> chunk_;
    std::string buffer_;
    std::size_t taken_ = 0;     // bytes of buffer_ that next_line() has given away
    std::size_t searched_ = 0;  // bytes of buffer_ in which no line ends, after taken_
};

}  // namespace cellkeep::kernels::driver
