// SPDX-License-Identifier: Apache-2.0
#include "protocol/json_number.hpp"

#include <algorithm>
#include <string_view>

namespace cellkeep::protocol {

namespace {

/// 2^1024 - 2^970, the least number that rounds to infinity (IEEE 754, round to nearest, ties to
/// even). It has kOverflowDigits digits.
constexpr std::string_view kOverflow =
    "17976931348623158079372897140530341507993413271003782693617377898044496829276475"
    "09466490179775872070963302864166928879109465555478519404026306574886715058206819"
    "08902000708383676273854845817711531764475730270069855571366959622842914819860834"
    "936475292719074168444365510704342711559699508093042880177904174497792";
constexpr std::int64_t kOverflowDigits = kOverflow.size();
/// No exponent beyond this changes whether a number fits: a text has fewer digits than this.
constexpr std::int64_t kPowerMax = 1'000'000'000'000;

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

}  // namespace

bool JsonNumber::take(char c) {
    switch (digits_) {
        case Digits::kNone:
            if (c == '-') {
                digits_ = Digits::kSign;
                return true;
            }
            [[fallthrough]];
        case Digits::kSign:
            if (!is_digit(c)) {
                return false;
            }
            digits_ = c == '0' ? Digits::kZero : Digits::kInteger;
            count_digit(c);
            return true;
        case Digits::kInteger:
            if (is_digit(c)) {
                count_digit(c);
                return true;
            }
            [[fallthrough]];
        case Digits::kZero:
            if (c == '.') {
                digits_ = Digits::kPoint;
                return true;
            }
            break;
        case Digits::kPoint:
        case Digits::kFraction:
            if (is_digit(c)) {
                digits_ = Digits::kFraction;
                count_digit(c);
                return true;
            }
            break;
        case Digits::kExponent:
            if (c == '+' || c == '-') {
                power_negative_ = c == '-';
                digits_ = Digits::kExponentSign;
                return true;
            }
            [[fallthrough]];
        case Digits::kExponentSign:
        case Digits::kPower:
            if (!is_digit(c)) {
                return false;
            }
            digits_ = Digits::kPower;
            power_ = std::min(power_ * 10 + (c - '0'), kPowerMax);
            return true;
    }
    const bool may_have_power =
        digits_ == Digits::kZero || digits_ == Digits::kInteger || digits_ == Digits::kFraction;
    if (may_have_power && (c == 'e' || c == 'E')) {
        digits_ = Digits::kExponent;
        return true;
    }
    return false;
}

void JsonNumber::count_digit(char digit) {
    const bool in_fraction = digits_ == Digits::kFraction;
    if (!significant_ && digit == '0') {
        magnitude_ -= in_fraction ? 1 : 0;
        return;
    }
    significant_ = true;
    magnitude_ += in_fraction ? 0 : 1;
    if (comparison_ == 0 && compared_ < kOverflow.size()) {
        comparison_ = digit - kOverflow[compared_];
        ++compared_;
    }
}

bool JsonNumber::fits_double() const {
    const bool whole = digits_ == Digits::kZero || digits_ == Digits::kInteger ||
                       digits_ == Digits::kFraction || digits_ == Digits::kPower;
    if (!whole || !significant_) {
        return whole;
    }
    const std::int64_t magnitude = magnitude_ + (power_negative_ ? -power_ : power_);
    if (magnitude != kOverflowDigits) {
        return magnitude < kOverflowDigits;
    }
    // The last digit of kOverflow is not 0, so a number with fewer digits that is equal so far is
    // less.
    return comparison_ < 0 || (comparison_ == 0 && compared_ < kOverflow.size());
}

}  // namespace cellkeep::protocol
