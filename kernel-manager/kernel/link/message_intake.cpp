// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/link/message_intake.hpp"

#include "protocol/frame.hpp"
#include "protocol/json_string.hpp"
#include "protocol/limits.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace cellkeep::session {

namespace {

using protocol::Member;
using protocol::Message;

constexpr std::size_t kMetadataPart = 3;
constexpr std::size_t kContentPart = 4;
/// Each piece repeats the stream's name and the metadata: longer ones are left out of the pieces.
constexpr std::size_t kStreamNameBytesMax = 64;

bool is_done(protocol::JsonScanner& scanner, std::string_view text, std::size_t bytes) {
    return scanner.advance(text, bytes) != protocol::JsonScanner::State::kMore;
}

bool is_done(protocol::ContentScan& scanner, std::string_view text, std::size_t bytes) {
    return scanner.advance(text, bytes);
}

std::string_view text_inside(const Message& message) {
    return protocol::inside_json_string(
        message.outline().find(Member::kText, message.content_json()));
}

/// One piece of a stream message: a message of its own, from the same sender about the same
/// request.
Message make_piece(const Message& whole, std::string_view inside) {
    protocol::Header header = whole.header();
    header.msg_id = protocol::make_header(header.msg_type, header.session, "").msg_id;
    const std::string_view name = whole.outline().find(Member::kName, whole.content_json());
    std::string content = R"({"name":)";
    content.reserve(inside.size() + 64);
    content += name.starts_with('"') && name.size() <= kStreamNameBytesMax ? name : R"("stdout")";
    content += R"(,"text":")";
    content += inside;
    content += R"("})";
    const std::string header_text = protocol::to_json_text(header);
    const bool repeats_metadata = whole.has_valid_metadata() &&
                                  whole.metadata_json().size() <= limits::kReplyMetadataBytesMax;
    auto piece = Message::create(
        {.channel = whole.channel(),
         .header = header_text,
         .parent_header = whole.parent_header_json(),
         .metadata = repeats_metadata ? whole.metadata_json() : "{}",
         .content = content,
         .buffers = {}});
    CELLKEEP_CHECK(piece.has_value());  // each part is one that the whole had, or shorter
    return std::move(piece).value();
}

}  // namespace

Status MessageIntake::begin(std::string frame) {
    CELLKEEP_CHECK(!busy());
    BOOST_OUTCOME_TRY(protocol::check_frame(frame));
    auto work = std::make_unique<Work>();
    const auto place = [&](std::size_t index) {
        const std::string_view part = protocol::frame_part(frame, index);
        const auto begin = static_cast<std::size_t>(part.data() - frame.data());
        return Part{begin, begin + part.size(), false};
    };
    work->metadata = place(kMetadataPart);
    work->content = place(kContentPart);
    work->frame = std::move(frame);
    work_ = std::move(work);
    return ok();
}

std::size_t MessageIntake::unscanned() const {
    if (!busy() || work_->split) {
        return 0;
    }
    const auto left = [](const Part& part, std::size_t position) {
        return part.done ? 0 : part.end - part.begin - position;
    };
    return left(work_->metadata, work_->metadata_scan.position()) +
           left(work_->content, work_->content_scan.position());
}

template <typename Scan>
std::size_t MessageIntake::scan(Part& part, Scan& scanner, std::size_t bytes) {
    const std::string_view text(work_->frame.data() + part.begin, part.end - part.begin);
    const std::size_t from = scanner.position();
    part.done = is_done(scanner, text, bytes);
    const std::size_t to = scanner.position();
    if (scanner.has_line_ends()) {
        const auto begin = work_->frame.begin() + static_cast<std::ptrdiff_t>(part.begin);
        std::replace_if(
            begin + static_cast<std::ptrdiff_t>(from),
            begin + static_cast<std::ptrdiff_t>(to),
            [](char c) { return c == '\r' || c == '\n'; },
            ' ');
    }
    return to - from;
}

Result<MessageIntake::Progress> MessageIntake::advance(std::size_t bytes) {
    if (work_->split) {
        return next_piece();
    }
    std::size_t used = 0;
    if (!work_->metadata.done) {
        used += scan(work_->metadata, work_->metadata_scan, bytes);
    }
    if (work_->metadata.done && !work_->content.done) {
        used += scan(work_->content, work_->content_scan, bytes - std::min(bytes, used));
    }
    if (!work_->content.done) {
        return Progress{std::nullopt, used};
    }
    return finish_scan(used);
}

Result<MessageIntake::Progress> MessageIntake::finish_scan(std::size_t bytes) {
    const bool metadata_valid =
        work_->metadata_scan.state() == protocol::JsonScanner::State::kValid &&
        protocol::starts_json_object(protocol::frame_part(work_->frame, kMetadataPart));
    auto message = Message::from_scanned_frame(
        std::move(work_->frame), work_->content_scan.outline(), metadata_valid);
    if (message.has_error()) {
        work_.reset();
        return std::move(message).error();
    }
    if (message.value().header().msg_type == "stream" &&
        text_inside(message.value()).size() > limits::kStreamMessageBytesMax) {
        work_->split = std::move(message).value();
        return Progress{std::nullopt, bytes};
    }
    work_.reset();
    return Progress{std::move(message).value(), bytes};
}

MessageIntake::Progress MessageIntake::next_piece() {
    const std::string_view inside = text_inside(*work_->split).substr(work_->split_at);
    const std::size_t cut = protocol::cut_json_string(inside, limits::kStreamMessageBytesMax);
    Progress progress{make_piece(*work_->split, inside.substr(0, cut)), cut};
    work_->split_at += cut;
    if (cut == inside.size()) {
        work_.reset();
    }
    return progress;
}

Result<Message> MessageIntake::pass_unscanned() {
    const std::unique_ptr<Work> work = std::move(work_);
    return Message::from_scanned_frame(std::move(work->frame), {}, /*metadata_valid=*/false);
}

}  // namespace cellkeep::session
