// SPDX-License-Identifier: Apache-2.0
#include "sandbox/inside/copy/proc_reader.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace cellkeep::sandbox {

namespace {

/// As getdents64(2) writes it; the name follows.
struct DirectoryEntry {
    std::uint64_t inode;
    std::int64_t offset;
    std::uint16_t size;
    std::uint8_t type;
};
constexpr std::size_t kNameOffset = offsetof(DirectoryEntry, type) + 1;

std::optional<int> to_number(const char* name) {
    int value = 0;
    const char* const end = name + std::strlen(name);
    const auto read = std::from_chars(name, end, value);
    return read.ec == std::errc() && read.ptr == end ? std::optional(value) : std::nullopt;
}

}  // namespace

ProcPath::ProcPath(std::string_view prefix, int number) noexcept {
    constexpr std::size_t kDigits = 12;
    const std::size_t size = prefix.copy(text_.data(), text_.size() - kDigits);
    (void)std::to_chars(text_.data() + size, text_.data() + text_.size() - 1, number);
}

std::string_view read_start(const char* path, std::span<char> buffer) noexcept {
    const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return {};
    }
    std::size_t done = 0;
    while (done < buffer.size()) {
        const ssize_t got = ::read(fd, buffer.data() + done, buffer.size() - done);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            break;
        }
        done += static_cast<std::size_t>(got);
    }
    (void)::close(fd);  // Ignored: it was only read from.
    return {buffer.data(), done};
}

std::optional<std::uint64_t> find_number(
    std::string_view text, std::string_view key, int base) noexcept {
    const std::size_t found = text.find(key);
    if (found == std::string_view::npos) {
        return std::nullopt;
    }
    text.remove_prefix(found + key.size());
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    std::uint64_t value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value, base);
    return read.ec == std::errc() ? std::optional(value) : std::nullopt;
}

ssize_t list_numbers(int directory, std::span<int> numbers) noexcept {
    alignas(DirectoryEntry) static std::array<char, 32UL << 10U> buffer;
    if (::lseek(directory, 0, SEEK_SET) < 0) {
        return -errno;
    }
    std::size_t count = 0;
    while (true) {
        const long got = ::syscall(SYS_getdents64, directory, buffer.data(), buffer.size());
        if (got <= 0) {
            return got < 0 ? -errno : static_cast<ssize_t>(count);
        }
        for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
            DirectoryEntry entry{};
            std::memcpy(&entry, buffer.data() + at, kNameOffset);
            if (const auto number = to_number(buffer.data() + at + kNameOffset)) {
                if (count < numbers.size()) {
                    numbers[count] = *number;
                }
                count += 1;
            }
            at += entry.size;
        }
    }
}

}  // namespace cellkeep::sandbox
