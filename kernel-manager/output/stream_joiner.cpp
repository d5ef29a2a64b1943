// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/output/stream_joiner.hpp"

#include "protocol/frame.hpp"
#include "protocol/json_string.hpp"
#include "protocol/limits.hpp"

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

namespace cellkeep::session {

namespace {

using protocol::Member;
using protocol::Message;

constexpr std::string_view kBeforeName = R"({"name":)";
constexpr std::string_view kBeforeText = R"(,"text":)";
constexpr std::string_view kEnd = "}";

std::string_view name_of(const Message& message) {
    return message.outline().find(Member::kName, message.content_json());
}

std::string_view quoted_text_of(const Message& message) {
    return message.outline().find(Member::kText, message.content_json());
}

std::string_view text_of(const Message& message) {
    return protocol::inside_json_string(quoted_text_of(message));
}

/// The joined message. Its content is not scanned again: the places of its members are known.
/// inside: what stands between the quotes of its text.
Message make_joined(const Message& first, std::string_view inside) {
    const std::string_view name = name_of(first);
    std::string content;
    content.reserve(
        kBeforeName.size() + name.size() + kBeforeText.size() + inside.size() + kEnd.size() + 2);
    protocol::ContentOutline outline;
    outline.valid = true;
    const auto add_member = [&](Member member, std::string_view before, auto... pieces) {
        content += before;
        auto& place = outline.places.at(static_cast<std::size_t>(member));
        place.begin = static_cast<std::uint32_t>(content.size());
        (content.append(pieces), ...);
        place.end = static_cast<std::uint32_t>(content.size());
    };
    add_member(Member::kName, kBeforeName, name);
    add_member(Member::kText, kBeforeText, std::string_view("\""), inside, std::string_view("\""));
    content += kEnd;
    const std::array<std::string_view, 5> parts{
        to_string(first.channel()),
        first.header_json(),
        first.parent_header_json(),
        first.metadata_json(),
        content};
    auto frame = protocol::encode_frame(parts);
    CELLKEEP_CHECK(frame.has_value());  // it is far below every bound of a frame
    auto joined =
        Message::from_scanned_frame(std::move(frame).value(), outline, /*metadata_valid=*/true);
    CELLKEEP_CHECK(joined.has_value());  // the headers are those of a message
    return std::move(joined).value();
}

}  // namespace

bool StreamJoiner::is_joinable(const Message& message) {
    if (message.header().msg_type != "stream" || message.buffer_count() != 0 ||
        message.metadata_json() != "{}") {
        return false;
    }
    const std::string_view content = message.content_json();
    const std::string_view name = name_of(message);
    const std::string_view text = quoted_text_of(message);
    // It is as long as its two members: there is no third one, and no space.
    return (name == R"("stdout")" || name == R"("stderr")") && text.starts_with('"') &&
           content.starts_with(kBeforeName) &&
           content.size() ==
               kBeforeName.size() + name.size() + kBeforeText.size() + text.size() + kEnd.size() &&
           text_of(message).size() < limits::kStreamMessageBytesMax;
}

std::size_t StreamJoiner::held_bytes() const {
    if (!first_.has_value()) {
        return 0;
    }
    return inside_.empty() ? text_of(*first_).size() : inside_.size();
}

bool StreamJoiner::full() const {
    return held_bytes() >= limits::kStreamMessageBytesMax;
}

bool StreamJoiner::accepts(const Message& message) const {
    if (!first_.has_value()) {
        return true;
    }
    return name_of(*first_) == name_of(message) &&
           first_->header().session == message.header().session &&
           first_->parent_header_json() == message.parent_header_json() &&
           held_bytes() + text_of(message).size() <= limits::kStreamMessageBytesMax;
}

void StreamJoiner::hold(Message message) {
    CELLKEEP_CHECK(accepts(message));
    if (!first_.has_value()) {
        first_ = std::move(message);
        return;
    }
    if (inside_.empty()) {
        inside_ = text_of(*first_);
    }
    inside_ += text_of(message);
}

std::optional<Message> StreamJoiner::take() {
    if (!first_.has_value()) {
        return std::nullopt;
    }
    const Message first = *std::exchange(first_, std::nullopt);
    const std::string inside = std::exchange(inside_, {});
    return inside.empty() ? first : make_joined(first, inside);
}

}  // namespace cellkeep::session
