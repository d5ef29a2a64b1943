// SPDX-License-Identifier: Apache-2.0
//
// Frames put together by hand, also wrong ones, independently of the encoder under test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::test {

inline std::string little_endian(std::uint64_t value, std::size_t size = 8) {
    std::string bytes;
    for (std::size_t i = 0; i < size; ++i) {
        bytes += static_cast<char>(value >> (8 * i) & 0xffU);
    }
    return bytes;
}

/// The count, the offsets and then the payload, whatever they say.
inline std::string raw_frame(
    std::uint64_t count, const std::vector<std::uint64_t>& offsets, std::string_view payload) {
    std::string frame = little_endian(count);
    for (const std::uint64_t offset : offsets) {
        frame += little_endian(offset);
    }
    return frame.append(payload);
}

/// The offsets of a right frame with parts of these lengths.
inline std::vector<std::uint64_t> offsets_of(const std::vector<std::uint64_t>& lengths) {
    std::vector<std::uint64_t> offsets{8 * (lengths.size() + 2)};
    for (const std::uint64_t length : lengths) {
        offsets.push_back(offsets.back() + length);
    }
    return offsets;
}

inline std::string right_frame(const std::vector<std::string>& parts) {
    std::vector<std::uint64_t> lengths;
    std::string payload;
    for (const std::string& part : parts) {
        lengths.push_back(part.size());
        payload += part;
    }
    return raw_frame(parts.size() + 1, offsets_of(lengths), payload);
}

}  // namespace cellkeep::test
