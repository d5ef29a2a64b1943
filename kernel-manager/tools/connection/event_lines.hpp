// SPDX-License-Identifier: Apache-2.0
//
// The data of server-sent events out of the bytes of a stream (HTML Standard, 9.2.6). The caller
// bounds how many bytes it feeds. One thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::tools {

class EventLines {
 public:
    /// The data of the events that are whole now.
    std::vector<std::string> feed(std::string_view bytes);

 private:
    void take_line(std::vector<std::string>& events);

    std::string line_;
    std::string data_;
    bool has_data_ = false;
    bool after_return_ = false;  // a line feed now belongs to the end of the last line
};

}  // namespace cellkeep::tools
