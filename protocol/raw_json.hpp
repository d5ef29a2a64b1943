// SPDX-License-Identifier: Apache-2.0
//
// JSON text that is known to be valid and to hold no line ends: a range of bytes and what keeps
// them alive, usually the message that they came in. It is passed on and spliced into other texts
// (text_pieces.hpp) without being read. Copies share the bytes. Thread-safe: immutable.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace cellkeep::protocol {

class RawJson {
 public:
    /// null
    RawJson() = default;
    /// Precondition: valid JSON without line ends, such as dump_json makes.
    explicit RawJson(std::string text) {
        auto shared = std::make_shared<const std::string>(std::move(text));
        text_ = *shared;
        held_bytes_ = shared->size();
        owner_ = std::move(shared);
    }
    /// The same for a range of bytes that the owner keeps alive, with the memory that this takes.
    RawJson(std::shared_ptr<const void> owner, std::string_view text, std::size_t held_bytes)
        : owner_(std::move(owner)), text_(text), held_bytes_(held_bytes) {}

    std::string_view text() const { return text_; }
    bool is_null() const { return text_ == "null"; }
    bool is_object() const { return text_.starts_with('{'); }
    const std::shared_ptr<const void>& owner() const { return owner_; }
    /// Bytes of memory that this keeps, shared with other values of the same owner.
    std::size_t held_bytes() const { return held_bytes_; }

 private:
    std::shared_ptr<const void> owner_;
    std::string_view text_ = "null";
    std::size_t held_bytes_ = 0;
};

}  // namespace cellkeep::protocol
