// SPDX-License-Identifier: Apache-2.0
//
// A control file that is read again and again. It is opened at the first read and kept, so that
// each of the following ones is one system call. What cannot be read counts 0: a counter whose
// control is absent.
#pragma once

#include "protocol/support/unique_fd.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace cellkeep::sandbox {

class CounterFile {
 public:
    /// The number that the file begins with. path: always the same one.
    std::uint64_t number(const std::string& path);
    /// The number after the key at the beginning of a line ("oom_kill 2").
    std::uint64_t keyed(const std::string& path, std::string_view key);
    /// Until the next read, which opens it again.
    void close() { fd_.reset(); }

 private:
    /// Longer than the files that are read here get; what is beyond is not looked at.
    static constexpr std::size_t kBytesMax = 4096;

    std::string_view read(const std::string& path, char* buffer);

    UniqueFd fd_;
};

}  // namespace cellkeep::sandbox
