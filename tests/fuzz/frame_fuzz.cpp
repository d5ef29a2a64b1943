// SPDX-License-Identifier: Apache-2.0
//
// decode_frame: what it accepts is exactly what encode_frame makes, and every part lies inside.
#include "protocol/frame.hpp"
#include "tests/fuzz/fuzz_target.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace cellkeep::protocol;
    const std::string_view frame = cellkeep::fuzz::Input(data, size).rest();
    const auto parts = decode_frame(frame);
    CELLKEEP_CHECK(parts.has_value() == check_frame(frame).has_value());
    if (parts.has_error()) {
        CELLKEEP_CHECK(!parts.error().message().empty());
        return 0;
    }
    CELLKEEP_CHECK(parts.value().size() >= kFramePartsMin);
    for (const std::string_view part : parts.value()) {
        CELLKEEP_CHECK(part.data() >= frame.data());
        CELLKEEP_CHECK(part.data() + part.size() <= frame.data() + frame.size());
    }
    const auto again = encode_frame(parts.value());
    CELLKEEP_CHECK(again.has_value() && again.value() == frame);
    return 0;
}
