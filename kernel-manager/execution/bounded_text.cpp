// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/bounded_text.hpp"

#include "kernel-manager/execution/saved_texts.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::session {

namespace {

constexpr const char* kWorkspaceFull = "workspace_full";
constexpr const char* kTooLong = "too_long";

bool is_continuation(char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

/// The longest prefix of at most bytes_max bytes that ends between characters.
std::size_t whole_prefix(std::string_view text, std::size_t bytes_max) {
    if (text.size() <= bytes_max) {
        return text.size();
    }
    std::size_t end = bytes_max;
    while (end > 0 && is_continuation(text[end])) {
        --end;
    }
    return end;
}

/// Where the longest suffix of at most bytes_max bytes that begins with a character starts.
std::size_t whole_suffix_start(std::string_view text, std::size_t bytes_max) {
    if (text.size() <= bytes_max) {
        return 0;
    }
    std::size_t start = text.size() - bytes_max;
    while (start < text.size() && is_continuation(text[start])) {
        ++start;
    }
    return start;
}

}  // namespace

BoundedText::BoundedText(std::uint64_t bytes_max, std::string save_path)
    : half_max_(bytes_max / 2), bytes_max_(bytes_max), save_path_(std::move(save_path)) {}

void BoundedText::append(std::string_view text, const sandbox::Workspace* workspace) {
    total_ += text.size();
    if (!cut_) {
        head_.append(text);
        if (head_.size() <= bytes_max_) {
            return;
        }
        cut_ = true;
        begin_saving(workspace);
        tail_ = head_.substr(whole_suffix_start(head_, half_max_));
        head_.resize(whole_prefix(head_, half_max_));
        return;
    }
    save(text);
    tail_.append(text);
    // Trimmed in strides, so that a flood of short lines does not move the tail each time.
    if (tail_.size() > 2 * half_max_ + 4096) {
        tail_.erase(0, whole_suffix_start(tail_, half_max_));
    }
}

void BoundedText::clear() {
    head_.clear();
    tail_.clear();
    total_ = 0;
    cut_ = false;
    upload_.reset();
    not_saved_.clear();
}

BoundedText::Outcome BoundedText::finish() {
    if (!cut_) {
        return {std::move(head_), std::nullopt};
    }
    Truncation truncation;
    truncation.total = total_;
    if (upload_.has_value() && upload_->commit().has_value()) {
        truncation.saved_to = save_path_;
    } else {
        truncation.not_saved = not_saved_.empty() ? kWorkspaceFull : not_saved_;
    }
    upload_.reset();
    tail_.erase(0, whole_suffix_start(tail_, half_max_));
    truncation.kept = head_.size() + tail_.size();
    std::string note = "\n… " + std::to_string(total_ - truncation.kept) + " bytes left out";
    note += truncation.saved_to.empty() ? " …\n" : "; the whole text is in " + save_path_ + " …\n";
    return {std::move(head_) + note + tail_, truncation};
}

void BoundedText::begin_saving(const sandbox::Workspace* workspace) {
    if (workspace == nullptr) {
        return;
    }
    room_ = saved_text_room(*workspace);
    auto upload = workspace->begin_upload(save_path_);
    // A full workspace is no reason to fail the execution: the answer then says that nothing is
    // saved.
    if (upload.has_value()) {
        upload_.emplace(std::move(upload).value());
        save(head_);
    }
}

void BoundedText::save(std::string_view text) {
    if (!upload_.has_value()) {
        return;
    }
    // Half a file would be taken for the whole.
    if (text.size() > room_) {
        upload_.reset();
        not_saved_ = kTooLong;
    } else if (upload_->append(text).has_error()) {
        upload_.reset();
        not_saved_ = kWorkspaceFull;
    }
    room_ -= std::min<std::uint64_t>(room_, text.size());
}

}  // namespace cellkeep::session
