// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/image/image_scratch.hpp"

#include "kernel-manager/image/store_lock.hpp"
#include "protocol/sha256.hpp"
#include "protocol/support/syscall.hpp"

#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <system_error>

namespace cellkeep::image {

namespace {

constexpr const char* kBuilding = "building-";
/// What is being removed. Older versions also build under such names, with the lock of the builds
/// of environments.
constexpr const char* kUnfinished = "unfinished-";
constexpr const char* kBootId = "/proc/sys/kernel/random/boot_id";
constexpr std::size_t kBootIdBytesMax = 64;
constexpr std::size_t kScratchDigits = 16;
constexpr std::size_t kTrashBytes = 8;

std::string builds_of(Kind kind) {
    return kBuilding + std::string(to_string(kind)) + "-";
}

/// Half made or half removed, and not in use by what the caller does not keep out.
bool is_left_over(const std::string& name, Kind kind) {
    return name.starts_with(builds_of(kind)) ||
           (kind == Kind::kEnvironment && name.starts_with(kUnfinished));
}

}  // namespace

Result<std::string> scratch_name(const Recipe& recipe, Format format) {
    BOOST_OUTCOME_TRY(const std::string boot, read_file(kBootId, kBootIdBytesMax));
    protocol::Sha256 digest;
    digest.update_field(boot);
    digest.update_field(to_string(format));
    digest.update_field(recipe.fingerprint);
    return builds_of(recipe.kind) + digest.finish().substr(0, kScratchDigits);
}

Result<std::string> trash_name() {
    BOOST_OUTCOME_TRY(const std::string random, random_hex(kTrashBytes));
    return kUnfinished + random;
}

Status remove_tree(const std::string& path) {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    // Another process may remove the same.
    return error && error != std::errc::no_such_file_or_directory
               ? Error::from_errno(error.value(), "remove(" + path + ")")
               : Status(ok());
}

Status remove_dead(const std::string& directory, Kind kind, const std::string& kept) {
    const std::string name = std::filesystem::path(directory).filename().string();
    if (name == kept) {
        return ok();
    }
    if (!is_left_over(name, kind)) {
        if (::access((directory + "/" + kDamagedRecord).c_str(), F_OK) != 0) {
            return ok();
        }
        BOOST_OUTCOME_TRY(const auto claimed, claim_unused(directory));
        if (!claimed) {
            return ok();
        }
    }
    return remove_tree(directory);
}

}  // namespace cellkeep::image
