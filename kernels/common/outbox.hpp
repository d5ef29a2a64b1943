// SPDX-License-Identifier: Apache-2.0
//
// Makes every message that leaves the kernel: header (this process's session id, a zero-padded
// date, protocol version 5.5), parent header, frame. Contents are JSON texts and pass through
// unparsed. Failures to send are final for the process (the peer is gone) and are noted by Link; a
// message past a limit is the sender's error and is returned. Thread-safe.
#pragma once

#include "kernels/common/link.hpp"
#include "protocol/message.hpp"
#include "protocol/support/result.hpp"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::kernels {

/// The parts of a message that its sender chooses, as JSON texts.
struct Payload {
    std::string_view type;
    std::string_view content = "{}";
    std::string_view metadata = "{}";
    std::vector<std::string_view> buffers = {};
};

class Outbox {
 public:
    /// session: this process's id in its headers. Clients detect a restart by its change.
    Outbox(Link& link, std::string session) : link_(link), session_(std::move(session)) {}

    /// Sends on channel as a child of parent (a header as JSON text, or "{}"). Returns the msg_id.
    /// kLimitExceeded: the message does not fit a frame and was not sent.
    Result<std::string> send(
        protocol::Channel channel,
        std::string_view parent,
        const Payload& payload,
        More more = More::kNo);

    /// For a process that goes on from a copy: nothing that it says may be taken for the earlier
    /// one's. Only while no other thread sends.
    void rename(std::string session) { session_ = std::move(session); }

    /// Link::flush().
    Status flush() { return link_.flush(); }

    /// Sends on iopub as a child of the output parent.
    Status publish(const Payload& payload, More more = More::kNo);

    /// The header, as JSON text, of the request that output belongs to: the last execution or comm
    /// message. Requests such as completion do not change it, so that output of background work
    /// stays with its cell.
    void set_output_parent(std::string header);
    std::string output_parent() const;

 private:
    Link& link_;
    std::string session_;
    std::atomic<std::uint64_t> sent_{0};
    mutable std::mutex parent_mutex_;
    std::string output_parent_ = "{}";
};

}  // namespace cellkeep::kernels
