// SPDX-License-Identifier: Apache-2.0
//
// The Range header for one range of bytes (RFC 9110, section 14). Anything that is not one plain
// byte range is ignored, as the specification allows: the client then gets the whole file.
#pragma once

#include <cstdint>
#include <string_view>

namespace cellkeep::http {

struct ByteRange {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
};

enum class RangeOutcome { kWhole, kPart, kNotSatisfiable };

struct RangeAnswer {
    RangeOutcome outcome = RangeOutcome::kWhole;
    ByteRange range;  // for kWhole and kPart
};

RangeAnswer select_range(std::string_view header, std::uint64_t file_bytes);

}  // namespace cellkeep::http
