// SPDX-License-Identifier: Apache-2.0
//
// The server's end of the control socket of a sandbox: requests to pid 1 and its replies
// (sandbox/shared/messages.hpp). Owns the socket. Neither send() nor take() ever waits, whatever
// pid 1 does. Not thread-safe.
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"
#include "sandbox/shared/messages.hpp"

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::sandbox {

class InitChannel {
 public:
    struct Reply {
        ReplyMessage message;
        std::vector<UniqueFd> fds;
    };

    /// control: a SOCK_SEQPACKET socket that does not block; pid 1 has the other end.
    explicit InitChannel(UniqueFd control) : control_(std::move(control)) {}
    /// Of another program that was in this process: sequences go on behind its last one.
    InitChannel(UniqueFd control, std::uint32_t last_sequence)
        : control_(std::move(control)), last_sequence_(last_sequence) {}

    /// Readable when take() has something, and when pid 1 is gone.
    int fd() const { return control_.get(); }
    /// Sends a request and returns its sequence number, which the reply to it has, too. The
    /// descriptors stay the caller's. kUnavailable if pid 1 has not taken the earlier requests, so
    /// that there is no room; kSystem if pid 1 is gone.
    Result<std::uint32_t> send(
        RequestHeader header, const std::string& text, std::span<const int> fds);
    /// A signal to a worker's process group. kInvalidArgument for a number that is none; otherwise
    /// as send().
    Status signal(std::uint32_t worker, int number);
    /// Of RequestKind::kLetPass; as signal().
    Status let_pass(pid_t inside, std::uint32_t calls);
    /// The next reply; nullopt if none is there. kUnavailable if pid 1 is gone.
    Result<std::optional<Reply>> take();
    /// Waits for the reply to one request and drops the replies to earlier ones. kTimeout after the
    /// patience.
    Result<Reply> wait(std::uint32_t sequence, std::chrono::milliseconds patience);
    /// Pid 1 ends when the last copy of this end is closed.
    void close() { control_.reset(); }
    /// For another program: this has none any more.
    UniqueFd pass_on() { return std::move(control_); }
    std::uint32_t last_sequence() const { return last_sequence_; }

 private:
    UniqueFd control_;
    std::uint32_t last_sequence_ = 0;
};

}  // namespace cellkeep::sandbox
