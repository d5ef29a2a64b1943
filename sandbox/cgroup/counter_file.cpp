// SPDX-License-Identifier: Apache-2.0
#include "sandbox/cgroup/counter_file.hpp"

#include "sandbox/cgroup/cgroup_v2.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>

namespace cellkeep::sandbox {

std::string_view CounterFile::read(const std::string& path, char* buffer) {
    if (!fd_) {
        fd_.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    }
    ssize_t got = -1;
    do {
        // At offset 0 the kernel makes the text anew.
        got = ::pread(fd_.get(), buffer, kBytesMax, 0);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        fd_.reset();
    }
    return {buffer, got > 0 ? static_cast<std::size_t>(got) : 0};
}

std::optional<std::uint64_t> CounterFile::find_number(const std::string& path) {
    std::array<char, kBytesMax> buffer;  // not initialised: read() says how much of it counts
    const std::string_view text = read(path, buffer.data());
    std::uint64_t value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    return parsed.ec == std::errc() ? std::optional(value) : std::nullopt;
}

std::optional<std::uint64_t> CounterFile::find_keyed(
    const std::string& path, std::string_view key) {
    std::array<char, kBytesMax> buffer;  // as above
    return find_keyed_number(read(path, buffer.data()), key);
}

}  // namespace cellkeep::sandbox
