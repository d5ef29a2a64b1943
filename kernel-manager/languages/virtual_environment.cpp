// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/languages/virtual_environment.hpp"

#include "protocol/support/syscall.hpp"

#include <filesystem>
#include <system_error>

namespace cellkeep::session {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kStampBytesMax = 4096;

}  // namespace

std::string digest_of(const std::string& environment) {
    const auto stamp = read_file(environment + "/.made-from", kStampBytesMax);
    if (stamp.has_error()) {
        return "unlocked";
    }
    const std::string hex = stamp.value().substr(0, stamp.value().find('\n'));
    const bool is_hash =
        hex.size() == 64 && hex.find_first_not_of("0123456789abcdef") == std::string::npos;
    return is_hash ? "sha256:" + hex : "unlocked";
}

bool has_package(const std::string& environment, const char* name) {
    std::error_code error;
    const fs::path library = fs::path(environment) / "lib";
    for (fs::directory_iterator entry(library, error), end; !error && entry != end;
         entry.increment(error)) {
        if (fs::exists(entry->path() / "site-packages" / name, error)) {
            return true;
        }
    }
    return false;
}

}  // namespace cellkeep::session
