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

constexpr const char* kUnfinished = "unfinished-";
constexpr const char* kBootId = "/proc/sys/kernel/random/boot_id";
constexpr std::size_t kBootIdBytesMax = 64;
constexpr std::size_t kScratchDigits = 16;
constexpr std::size_t kTrashBytes = 8;

std::string unfinished_of(Kind kind) {
    return kUnfinished + std::string(to_string(kind)) + "-";
}

}  // namespace

Result<std::string> scratch_name(const Recipe& recipe, Format format) {
    BOOST_OUTCOME_TRY(const std::string boot, read_file(kBootId, kBootIdBytesMax));
    protocol::Sha256 digest;
    digest.update_field(boot);
    digest.update_field(to_string(format));
    digest.update_field(recipe.fingerprint);
    return unfinished_of(recipe.kind) + digest.finish().substr(0, kScratchDigits);
}

Result<std::string> trash_name() {
    BOOST_OUTCOME_TRY(const std::string random, random_hex(kTrashBytes));
    return kUnfinished + random;
}

Status remove_tree(const std::string& path) {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    return error ? Error::from_errno(error.value(), "remove(" + path + ")") : Status(ok());
}

Status remove_dead(const std::string& directory, Kind kind, const std::string& kept) {
    const std::string name = std::filesystem::path(directory).filename().string();
    const Kind other = kind == Kind::kEnvironment ? Kind::kPrograms : Kind::kEnvironment;
    if (name == kept || name.starts_with(unfinished_of(other))) {
        return ok();
    }
    if (!name.starts_with(kUnfinished)) {
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
