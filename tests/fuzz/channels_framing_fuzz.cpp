// SPDX-License-Identifier: Apache-2.0
//
// decode_request: any input of a client becomes a message that can be passed on or answered, or an
// error with a reason; the same message in the legacy framing is JSON.
#include "kernel-manager/jupyter/channels/channels_framing.hpp"
#include "protocol/json.hpp"
#include "tests/fuzz/fuzz_target.hpp"

#include <string>

namespace {

using cellkeep::jupyter::Framing;
using cellkeep::jupyter::OutgoingFrame;

void check_outgoing(const cellkeep::protocol::Message& message) {
    const OutgoingFrame frame(Framing::kLegacy, message, OutgoingFrame::Buffers::kLeaveOut);
    std::string text;
    for (const std::string_view piece : frame.pieces()) {
        text += piece;
    }
    const auto parsed = cellkeep::protocol::parse_json_object(text, "sent");
    CELLKEEP_CHECK(
        parsed.has_value() || parsed.error().code() == cellkeep::ErrorCode::kLimitExceeded);
    const OutgoingFrame with_buffers(Framing::kLegacy, message);
    std::string data;
    for (const std::string_view piece : with_buffers.pieces()) {
        data += piece;
    }
    const auto again =
        cellkeep::jupyter::decode_request(Framing::kLegacy, with_buffers.binary(), data);
    if (again.has_value() && again.value().problem.empty()) {
        CELLKEEP_CHECK(again.value().message.buffer_count() == message.buffer_count());
    }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    cellkeep::fuzz::Input input(data, size);
    const std::uint8_t mode = input.take_byte();
    const Framing framing = (mode & 1U) != 0 ? Framing::kV1 : Framing::kLegacy;
    const bool binary = (mode & 2U) != 0;
    const auto decoded =
        cellkeep::jupyter::decode_request(framing, binary, std::string(input.rest()));
    if (decoded.has_error()) {
        CELLKEEP_CHECK(!decoded.error().message().empty());
        return 0;
    }
    const cellkeep::protocol::Message& message = decoded.value().message;
    CELLKEEP_CHECK(!message.header().msg_id.empty());
    CELLKEEP_CHECK(message.channel() != cellkeep::protocol::Channel::kIopub);
    CELLKEEP_CHECK(message.parse_content().has_value());
    check_outgoing(message);
    return 0;
}
