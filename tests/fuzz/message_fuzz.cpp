// SPDX-License-Identifier: Apache-2.0
//
// Message::from_frame: an accepted message keeps its bytes, and its parts make the same message
// again.
#include "protocol/limits.hpp"
#include "protocol/message.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace {

// The fields that were picked out are those that a full parse finds.
void check_fields(const cellkeep::protocol::Header& header, const nlohmann::json& full) {
    for (const auto& [name, field] :
         {std::pair{"msg_id", &header.msg_id},
          std::pair{"session", &header.session},
          std::pair{"username", &header.username},
          std::pair{"date", &header.date},
          std::pair{"msg_type", &header.msg_type},
          std::pair{"version", &header.version}}) {
        const auto found = full.find(name);
        const bool is_string = found != full.end() && found->is_string();
        CELLKEEP_CHECK(*field == (is_string ? found->get<std::string>() : std::string()));
    }
    const auto subshell = full.find("subshell_id");
    const bool has_subshell = subshell != full.end() && subshell->is_string();
    CELLKEEP_CHECK(header.subshell_id.has_value() == has_subshell);
    CELLKEEP_CHECK(!has_subshell || *header.subshell_id == subshell->get<std::string>());
}

}  // namespace

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

    const auto header = parse_json_object(first.header_json(), "header");
    CELLKEEP_CHECK(header.has_value());
    check_fields(first.header(), header.value());
    const auto parent = parse_json_object(first.parent_header_json(), "parent_header");
    CELLKEEP_CHECK(parent.has_value());
    check_fields(first.parent(), parent.value());
    const auto rewritten = parse_json_object(to_json_text(first.header()), "header");
    CELLKEEP_CHECK(rewritten.has_value() && rewritten.value() == to_json(first.header()));

    const auto content = first.parse_content();
    if (content.has_value()) {
        // The parent may be larger when written again; make() must then cut it, not fail.
        const auto made =
            Message::make(first.channel(), first.header(), parent.value(), content.value());
        CELLKEEP_CHECK(made.parent().msg_id == first.parent().msg_id);
        CELLKEEP_CHECK(made.parse_content().value() == content.value());
    }
    return 0;
}
