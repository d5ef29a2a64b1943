// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/tools/connection/event_lines.hpp"

#include <utility>

namespace cellkeep::tools {

std::vector<std::string> EventLines::feed(std::string_view bytes) {
    std::vector<std::string> events;
    while (!bytes.empty()) {
        if (std::exchange(after_return_, false) && bytes.front() == '\n') {
            bytes.remove_prefix(1);
            continue;
        }
        const std::size_t end = bytes.find_first_of("\r\n");
        line_ += bytes.substr(0, end);
        if (end == std::string_view::npos) {
            break;
        }
        after_return_ = bytes[end] == '\r';
        bytes.remove_prefix(end + 1);
        take_line(events);
    }
    return events;
}

void EventLines::take_line(std::vector<std::string>& events) {
    constexpr std::string_view kData = "data:";
    if (line_.empty()) {
        if (std::exchange(has_data_, false)) {
            events.push_back(std::exchange(data_, {}));
        }
        return;
    }
    if (line_.starts_with(kData)) {
        std::string_view value = std::string_view(line_).substr(kData.size());
        value.remove_prefix(value.starts_with(' ') ? 1 : 0);
        data_ += std::exchange(has_data_, true) ? "\n" : "";
        data_ += value;
    }
    line_.clear();
}

}  // namespace cellkeep::tools
