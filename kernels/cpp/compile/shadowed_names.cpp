// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpp/compile/shadowed_names.hpp"

#include <cstddef>
#include <string_view>

namespace cellkeep::cpp {

namespace {
constexpr std::string_view kTag = "[abi:cell";
}

std::string without_tags(std::string text) {
    for (std::size_t at = text.find(kTag); at != std::string::npos; at = text.find(kTag, at)) {
        const std::size_t end = text.find(']', at);
        text.erase(at, end == std::string::npos ? std::string::npos : end - at + 1);
    }
    return text;
}

}  // namespace cellkeep::cpp
