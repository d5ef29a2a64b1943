// SPDX-License-Identifier: Apache-2.0
//
// Lines out of bytes, however these are cut, with a bound on the one that is not at its end. One
// thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::tools {

class LineSplitter {
 public:
    explicit LineSplitter(std::size_t bytes_max) : bytes_max_(bytes_max) {}

    /// The lines that are whole now, without their ends and without empty ones. Of one that is too
    /// long only the beginning comes.
    std::vector<std::string> feed(std::string_view bytes) {
        std::vector<std::string> lines;
        while (!bytes.empty()) {
            const std::size_t end = bytes.find('\n');
            take(bytes.substr(0, end));
            if (end == std::string_view::npos) {
                break;
            }
            bytes.remove_prefix(end + 1);
            finish(lines);
        }
        return lines;
    }
    /// Some line was or is longer than the bound.
    bool overflowed() const { return overflowed_; }
    bool is_empty() const { return line_.empty(); }

 private:
    void take(std::string_view piece) {
        const std::size_t room = bytes_max_ - line_.size();
        overflowed_ = overflowed_ || piece.size() > room;
        line_ += piece.substr(0, room);
    }
    void finish(std::vector<std::string>& lines) {
        if (!line_.empty() && line_.back() == '\r') {
            line_.pop_back();
        }
        if (!line_.empty()) {
            lines.push_back(std::move(line_));
        }
        line_.clear();
    }

    std::size_t bytes_max_;
    std::string line_;
    bool overflowed_ = false;
};

}  // namespace cellkeep::tools
