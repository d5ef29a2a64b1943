// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/output/reply_facts.hpp"

#include "protocol/json_string.hpp"
#include "protocol/limits.hpp"

#include <charconv>
#include <utility>

namespace cellkeep::session {

bool says(const protocol::Message& message, protocol::Member member, std::string_view text) {
    const std::string_view said = message.outline().find(member, message.content_json());
    return said.starts_with('"') && protocol::read_json_string(said, text.size() + 4) == text;
}

std::optional<std::int64_t> read_integer(std::string_view json_text) {
    std::int64_t value = 0;
    const char* const end = json_text.data() + json_text.size();
    const auto [stop, failed] = std::from_chars(json_text.data(), end, value);
    return failed == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

nlohmann::json reply_details(const protocol::Message& reply) {
    if (reply.metadata_json().size() > limits::kReplyMetadataBytesMax) {
        return nlohmann::json::object();
    }
    auto metadata = reply.parse_metadata();
    return metadata.has_value() ? std::move(metadata).value() : nlohmann::json::object();
}

}  // namespace cellkeep::session
