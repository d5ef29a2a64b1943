// SPDX-License-Identifier: Apache-2.0
//
// A control file that is read again and again. It is opened at the first read and kept, so that
// each of the following ones is one system call. After a read that failed it is opened again.
#pragma once

#include "protocol/support/unique_fd.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::sandbox {

class CounterFile {
 public:
    /// The number that the file begins with; nothing if it cannot be read or is none. path: always
    /// the same one.
    std::optional<std::uint64_t> find_number(const std::string& path);
    /// The number after the key at the beginning of a line ("oom_kill 2"), likewise.
    std::optional<std::uint64_t> find_keyed(const std::string& path, std::string_view key);
    /// The same, and 0 for nothing.
    std::uint64_t number(const std::string& path) { return find_number(path).value_or(0); }
    std::uint64_t keyed(const std::string& path, std::string_view key) {
        return find_keyed(path, key).value_or(0);
    }
    /// Until the next read, which opens it again.
    void close() { fd_.reset(); }

 private:
    /// Longer than the files that are read here get; what is beyond is not looked at.
    static constexpr std::size_t kBytesMax = 4096;

    std::string_view read(const std::string& path, char* buffer);

    UniqueFd fd_;
};

}  // namespace cellkeep::sandbox
