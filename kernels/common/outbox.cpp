// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/outbox.hpp"

#include "protocol/frame.hpp"
#include "protocol/support/time.hpp"

#include <chrono>
#include <optional>
#include <span>
#include <utility>

namespace cellkeep::kernels {

namespace {

/// The user name in a kernel's headers says nothing; Jupyter kernels use this or "kernel".
constexpr std::string_view kUsername = "kernel";

}  // namespace

Result<std::string> Outbox::send(
    protocol::Channel channel, std::string_view parent, const Payload& payload, More more) {
    // Unique because the session's name is, which belongs to this process alone; so no message
    // costs a system call for random bytes.
    protocol::Header header{
        .msg_id = session_ + '_' + std::to_string(sent_.fetch_add(1, std::memory_order_relaxed)),
        .session = session_,
        .username = std::string(kUsername),
        .date = to_iso8601(std::chrono::system_clock::now()),
        .msg_type = std::string(payload.type),
        .version = std::string(protocol::kProtocolVersion),
        .subshell_id = std::nullopt};
    const std::string header_json = protocol::to_json_text(header);
    std::vector<std::string_view> parts{
        protocol::to_string(channel), header_json, parent, payload.metadata, payload.content};
    parts.insert(parts.end(), payload.buffers.begin(), payload.buffers.end());
    BOOST_OUTCOME_TRY(
        const std::string frame,
        with_context(
            protocol::encode_frame(std::span<const std::string_view>(parts)), payload.type));
    BOOST_OUTCOME_TRY(link_.send(frame, more));
    return std::move(header.msg_id);
}

Status Outbox::publish(const Payload& payload, More more) {
    const std::string parent = output_parent();
    BOOST_OUTCOME_TRY(send(protocol::Channel::kIopub, parent, payload, more));
    return ok();
}

void Outbox::set_output_parent(std::string header) {
    const std::lock_guard lock(parent_mutex_);
    output_parent_ = std::move(header);
}

std::string Outbox::output_parent() const {
    const std::lock_guard lock(parent_mutex_);
    return output_parent_;
}

}  // namespace cellkeep::kernels
