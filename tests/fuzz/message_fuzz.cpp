// SPDX-License-Identifier: Apache-2.0
//
// Message::from_frame: an accepted message keeps its bytes, and its parts make the same message
// again.
#include "protocol/limits.hpp"
#include "protocol/message.hpp"
#include "tests/fuzz/fuzz_target.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace cellkeep::protocol;
    const std::string_view frame = cellkeep::fuzz::Input(data, size).rest();
    const auto message = Message::from_frame(std::string(frame));
    if (message.has_error()) {
        return 0;
    }
    const Message& first = message.value();
    CELLKEEP_CHECK(first.frame() == frame);
    CELLKEEP_CHECK(!first.header().msg_id.empty() && !first.header().msg_type.empty());
    CELLKEEP_CHECK(first.header().msg_id.size() <= cellkeep::limits::kHeaderFieldBytesMax);

    MessageParts parts{
        .channel = first.channel(),
        .header = first.header_json(),
        .parent_header = first.parent_header_json(),
        .metadata = first.metadata_json(),
        .content = first.content_json(),
        .buffers = {}};
    for (std::size_t i = 0; i < first.buffer_count(); ++i) {
        parts.buffers.push_back(first.buffer(i));
    }
    const auto second = Message::create(parts);
    CELLKEEP_CHECK(second.has_value() && second.value().frame() == frame);

    const auto there = first.with_channel(Channel::kControl);
    CELLKEEP_CHECK(there.has_value());
    const auto back = there.value().with_channel(first.channel());
    CELLKEEP_CHECK(back.has_value() && back.value().frame() == frame);

    // The picked fields are those that a full parse finds.
    const auto header = parse_json_object(first.header_json(), "header");
    CELLKEEP_CHECK(header.has_value());
    CELLKEEP_CHECK(header.value().at("msg_id") == first.header().msg_id);
    CELLKEEP_CHECK(header.value().at("msg_type") == first.header().msg_type);

    const auto content = first.parse_content();
    if (content.has_value()) {
        // The parent may be larger when written again; make() must then cut it, not fail.
        const auto parent = parse_json_object(first.parent_header_json(), "parent_header");
        CELLKEEP_CHECK(parent.has_value());
        const auto made =
            Message::make(first.channel(), first.header(), parent.value(), content.value());
        CELLKEEP_CHECK(made.parent().msg_id == first.parent().msg_id);
        CELLKEEP_CHECK(made.parse_content().value() == content.value());
    }
    return 0;
}
