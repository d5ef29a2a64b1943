// SPDX-License-Identifier: Apache-2.0
//
// What is in a tar archive, without unpacking it: of the forms that packages of Debian have, which
// are ustar and GNU's long names (tar(5); dpkg's own reader knows no others). Pure but for reading.
#pragma once

#include "protocol/support/result.hpp"

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cellkeep::environments {

/// Of one archive.
inline constexpr std::size_t kTarEntriesMax = 300'000;
/// A path, and where a link leads.
inline constexpr std::size_t kTarPathBytesMax = 4095;
/// Folders in one another: who walks a tree may hold a descriptor for each.
inline constexpr std::size_t kTarPathPartsMax = 64;

struct TarEntry {
    enum class Type { kFile, kDirectory, kLink, kSameFile, kOther };
    Type type = Type::kOther;
    std::string path;           // relative, clean, without "./" in front; "" is the archive's root
    std::string link;           // of kLink as it is; of kSameFile a path as above
    mode_t mode = 0;            // its permissions
    std::int64_t modified = 0;  // seconds since 1970
    std::uint64_t bytes = 0;    // of kFile
    std::uint64_t offset = 0;   // where they are in the archive
};

/// fd: a regular file. kProtocol for what is no such archive: one that ends early, a sum that does
/// not fit, a form that is not known, a path that is absolute, has "..", control characters or is
/// too long. kLimitExceeded beyond kTarEntriesMax.
Result<std::vector<TarEntry>> read_tar(int fd);

}  // namespace cellkeep::environments
