// SPDX-License-Identifier: Apache-2.0
#include "sandbox/cgroup/control_file.hpp"

#include "protocol/support/syscall.hpp"
#include "sandbox/cgroup/cgroup_v2.hpp"

#include <unistd.h>

#include <charconv>

namespace cellkeep::sandbox {

bool has_control_file(const std::string& path) {
    return ::access(path.c_str(), F_OK) == 0;
}

std::uint64_t read_number(const std::string& path) {
    const auto text = read_file(path, kControlFileBytesMax);
    std::uint64_t value = 0;
    if (text.has_value()) {
        const char* end = text.value().data() + text.value().size();
        if (std::from_chars(text.value().data(), end, value).ec != std::errc()) {
            return 0;
        }
    }
    return value;
}

std::uint64_t read_keyed(const std::string& path, std::string_view key) {
    const auto text = read_file(path, kControlFileBytesMax);
    return text.has_value() ? keyed_number(text.value(), key) : 0;
}

}  // namespace cellkeep::sandbox
