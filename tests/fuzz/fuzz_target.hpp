// SPDX-License-Identifier: Apache-2.0
//
// What the fuzz targets share: the entry point that libFuzzer calls, and a way to spend its bytes.
// A target states what must hold of any input with CELLKEEP_CHECK, which aborts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

// NOLINTNEXTLINE(readability-identifier-naming): the name is libFuzzer's
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace cellkeep::fuzz {

class Input {
 public:
    Input(const std::uint8_t* data, std::size_t size)
        : left_(reinterpret_cast<const char*>(data), size) {}

    bool empty() const { return left_.empty(); }
    std::string_view rest() const { return left_; }

    /// 0 when nothing is left.
    std::uint8_t take_byte() {
        if (left_.empty()) {
            return 0;
        }
        const auto byte = static_cast<std::uint8_t>(left_.front());
        left_.remove_prefix(1);
        return byte;
    }

    /// Reads a little-endian u16 length, then that many bytes, or all that are left.
    std::string_view take_block() {
        const std::size_t low = take_byte();
        const std::size_t length = low | std::size_t{take_byte()} << 8U;
        const std::string_view block = left_.substr(0, std::min(length, left_.size()));
        left_.remove_prefix(block.size());
        return block;
    }

 private:
    std::string_view left_;
};

}  // namespace cellkeep::fuzz
