// SPDX-License-Identifier: Apache-2.0
//
// A text in pieces. Short pieces are copied, long ones are references. So an answer with many
// megabytes of a guest's output costs no copy of it, however often it is sent.
// TextPieces is an immutable value whose copies share everything; TextSplicer makes one.
#pragma once

#include "protocol/raw_json.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::protocol {

class TextPieces {
 public:
    TextPieces() = default;
    explicit TextPieces(std::string text);

    std::size_t size() const { return size_; }
    /// Bytes of memory that this keeps alive: more than size() where a piece is part of a larger
    /// message. What several pieces in a row share counts once.
    std::size_t held_bytes() const { return held_bytes_; }
    std::vector<std::string_view> views() const;
    /// All but the first byte, such as the brace of an object that becomes part of another.
    /// Precondition: size() > 0.
    TextPieces without_first() const;
    /// All pieces copied into one string. For small texts and for tests.
    std::string join() const;

 private:
    friend class TextSplicer;
    struct Piece {
        std::shared_ptr<const void> owner;
        std::string_view text;
    };
    std::vector<Piece> pieces_;
    std::size_t size_ = 0;
    std::size_t held_bytes_ = 0;
};

class TextSplicer {
 public:
    /// A value of at least this size is referred to, a smaller one copied.
    static constexpr std::size_t kReferBytesMin = 16ULL << 10U;

    TextSplicer& add(std::string_view text);
    TextSplicer& add(const RawJson& value);
    TextSplicer& add(const TextPieces& text);
    /// What has been added; the splicer is empty afterwards.
    TextPieces finish();

 private:
    void refer(std::shared_ptr<const void> owner, std::string_view text, std::size_t held_bytes);
    void seal();

    std::string written_;  // behind pieces_
    TextPieces made_;
};

}  // namespace cellkeep::protocol
