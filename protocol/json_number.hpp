// SPDX-License-Identifier: Apache-2.0
//
// A JSON number (RFC 8259, section 6), taken byte by byte in a fixed amount of memory: whether it
// is one, and whether it fits a double. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cellkeep::protocol {

class JsonNumber {
 public:
    /// False: the byte is no part of the number, which ends before it.
    bool take(char c);
    /// Whether what was taken is a whole number that does not round to infinity.
    bool fits_double() const;

 private:
    enum class Digits {
        kNone,
        kSign,
        kZero,
        kInteger,
        kPoint,
        kFraction,
        kExponent,
        kExponentSign,
        kPower
    };
    void count_digit(char digit);

    // The number is 0.DDD… × 10^magnitude. Whether it fits is decided digit by digit.
    Digits digits_ = Digits::kNone;
    bool significant_ = false;    // a digit other than 0 was seen
    std::int64_t magnitude_ = 0;  // without the exponent
    std::int64_t power_ = 0;      // the exponent
    bool power_negative_ = false;
    std::size_t compared_ = 0;  // digits compared with the least number that does not fit
    int comparison_ = 0;        // less, equal so far, greater
};

}  // namespace cellkeep::protocol
