// SPDX-License-Identifier: Apache-2.0
#include "protocol/support/time.hpp"

#include <array>
#include <cstdio>
#include <ctime>

namespace cellkeep {

std::string to_iso8601(std::chrono::system_clock::time_point time) {
    const auto since_epoch = std::chrono::floor<std::chrono::microseconds>(time).time_since_epoch();
    const auto seconds = std::chrono::floor<std::chrono::seconds>(since_epoch);
    const auto whole = static_cast<std::time_t>(seconds.count());
    std::tm utc{};
    (void)::gmtime_r(&whole, &utc);  // cannot fail for a time that fits in 64 bits of seconds
    std::array<char, 24> date{};
    const std::size_t length = std::strftime(date.data(), date.size(), "%Y-%m-%dT%H:%M:%S", &utc);
    std::array<char, 16> fraction{};
    (void)std::snprintf(
        fraction.data(),
        fraction.size(),
        ".%06dZ",
        static_cast<int>((since_epoch - seconds).count()));
    return std::string(date.data(), length) + fraction.data();
}

}  // namespace cellkeep
