// SPDX-License-Identifier: Apache-2.0
#include "protocol/text_pieces.hpp"

#include <utility>

namespace cellkeep::protocol {

TextPieces::TextPieces(std::string text) {
    if (text.empty()) {
        return;
    }
    auto shared = std::make_shared<const std::string>(std::move(text));
    size_ = shared->size();
    held_bytes_ = shared->size();
    const std::string_view view = *shared;
    pieces_.push_back({std::move(shared), view});
}

std::vector<std::string_view> TextPieces::views() const {
    std::vector<std::string_view> views;
    views.reserve(pieces_.size());
    for (const Piece& piece : pieces_) {
        views.push_back(piece.text);
    }
    return views;
}

std::string TextPieces::join() const {
    std::string text;
    text.reserve(size_);
    for (const Piece& piece : pieces_) {
        text += piece.text;
    }
    return text;
}

TextPieces TextPieces::without_first() const {
    TextPieces rest = *this;
    rest.pieces_.front().text.remove_prefix(1);
    --rest.size_;
    return rest;
}

TextSplicer& TextSplicer::add(std::string_view text) {
    written_ += text;
    return *this;
}

TextSplicer& TextSplicer::add(const RawJson& value) {
    if (value.text().size() < kReferBytesMin || !value.owner()) {
        return add(value.text());
    }
    refer(value.owner(), value.text(), value.held_bytes());
    return *this;
}

TextSplicer& TextSplicer::add(const TextPieces& text) {
    if (text.size() < kReferBytesMin) {
        for (const TextPieces::Piece& piece : text.pieces_) {
            add(piece.text);
        }
        return *this;
    }
    seal();
    made_.pieces_.insert(made_.pieces_.end(), text.pieces_.begin(), text.pieces_.end());
    made_.size_ += text.size_;
    made_.held_bytes_ += text.held_bytes_;
    return *this;
}

TextPieces TextSplicer::finish() {
    seal();
    return std::exchange(made_, {});
}

void TextSplicer::refer(
    std::shared_ptr<const void> owner, std::string_view text, std::size_t held_bytes) {
    // Two members of one message with a few bytes between them keep it once.
    bool known = false;
    for (std::size_t i = made_.pieces_.size(); i > 0 && made_.pieces_.size() - i < 4; --i) {
        known = known || made_.pieces_[i - 1].owner == owner;
    }
    seal();
    made_.size_ += text.size();
    made_.held_bytes_ += known ? 0 : held_bytes;
    made_.pieces_.push_back({std::move(owner), text});
}

void TextSplicer::seal() {
    if (written_.empty()) {
        return;
    }
    TextPieces sealed(std::exchange(written_, {}));
    made_.size_ += sealed.size_;
    made_.held_bytes_ += sealed.held_bytes_;
    made_.pieces_.push_back(std::move(sealed.pieces_.front()));
}

}  // namespace cellkeep::protocol
