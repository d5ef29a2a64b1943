// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/process/command_output.hpp"

#include <algorithm>

namespace cellkeep::process {

void CommandOutput::append(Stream stream, std::string_view text) {
    while (!text.empty()) {
        const std::string_view part = text.substr(0, kOutputPieceBytesMax);
        add(stream, part);
        text.remove_prefix(part.size());
    }
    while (pieces_.size() > 1 && bytes_ > bytes_max_) {
        drop_oldest();
    }
}

void CommandOutput::add(Stream stream, std::string_view text) {
    // A program that writes byte by byte must not cost a piece for each.
    if (!pieces_.empty() && pieces_.back().stream == stream &&
        pieces_.back().text.size() + text.size() <= kOutputPieceBytesMax) {
        Piece& last = pieces_.back();
        const std::size_t before = cost(last);
        last.text += text;
        bytes_ += cost(last) - before;
        cost_total_ += cost(last) - before;
    } else {
        pieces_.push_back({stream, total_, std::string(text), cost_total_});
        bytes_ += cost(pieces_.back());
        cost_total_ += cost(pieces_.back());
    }
    total_ += text.size();
}

void CommandOutput::drop_oldest() {
    bytes_ -= cost(pieces_.front());
    pieces_.pop_front();
}

std::uint64_t CommandOutput::first_kept() const {
    return pieces_.empty() ? total_ : pieces_.front().begin;
}

std::deque<CommandOutput::Piece>::const_iterator CommandOutput::find(std::uint64_t place) const {
    return std::upper_bound(pieces_.begin(), pieces_.end(), place, [](auto at, const Piece& piece) {
        return at < piece.begin + piece.text.size();
    });
}

std::size_t CommandOutput::bytes_after(std::uint64_t place) const {
    const auto found = find(place);
    return found == pieces_.end() ? 0 : static_cast<std::size_t>(cost_total_ - found->cost_before);
}

CommandOutput::Next CommandOutput::after(std::uint64_t place) const {
    const auto found = find(place);
    if (found == pieces_.end()) {
        return {Stream::kStdout, {}, total_, 0};
    }
    const std::uint64_t begin = std::max(place, found->begin);
    const auto skipped = static_cast<std::size_t>(begin - found->begin);
    return {
        found->stream,
        std::string_view(found->text).substr(skipped),
        found->begin + found->text.size(),
        begin - place};
}

}  // namespace cellkeep::process
