// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/image/recipe_fingerprint.hpp"

#include "protocol/support/syscall.hpp"

#include <sys/stat.h>

#include <filesystem>
#include <set>
#include <system_error>

namespace cellkeep::image {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kStampBytesMax = 4096;

}  // namespace

void add_stat(protocol::Sha256& digest, const std::string& path) {
    struct stat info {};
    digest.update_field(path);
    // A folder needs only its name: its entries have lines of their own, and a file that was
    // created and removed again leaves the recipe as it was.
    if (::lstat(path.c_str(), &info) == 0 && !S_ISDIR(info.st_mode)) {
        digest.update_field(
            std::to_string(info.st_size) + "," + std::to_string(info.st_mtim.tv_sec) + "," +
            std::to_string(info.st_mtim.tv_nsec));
    }
}

void add_folder_time(protocol::Sha256& digest, const std::string& path) {
    struct stat info {};
    digest.update_field(path);
    if (::stat(path.c_str(), &info) == 0) {
        digest.update_field(
            std::to_string(info.st_mtim.tv_sec) + "," + std::to_string(info.st_mtim.tv_nsec));
    }
}

void add_tree_stat(protocol::Sha256& digest, const std::string& directory) {
    std::error_code error;
    std::set<std::string> paths{directory};
    fs::recursive_directory_iterator at(
        directory, fs::directory_options::skip_permission_denied, error);
    for (const fs::recursive_directory_iterator end; !error && at != end; at.increment(error)) {
        paths.insert(at->path().string());
    }
    for (const std::string& path : paths) {
        add_stat(digest, path);
    }
}

void add_environment(protocol::Sha256& digest, const std::string& environment) {
    const auto stamp = read_file(environment + "/.made-from", kStampBytesMax);
    if (stamp.has_error()) {
        add_tree_stat(digest, environment);
        return;
    }
    digest.update_field(stamp.value());
    add_folder_time(digest, environment + "/bin");
    std::error_code error;
    for (fs::directory_iterator at(environment + "/lib", error), end; !error && at != end;
         at.increment(error)) {
        add_folder_time(digest, at->path().string() + "/site-packages");
    }
}

void add_additions(const std::vector<Addition>& additions, protocol::Sha256& digest) {
    for (const Addition& addition : additions) {
        std::error_code error;
        digest.update_field(addition.target);
        if (fs::is_directory(addition.source, error)) {
            add_environment(digest, addition.source);
        } else {
            add_stat(digest, addition.source);
        }
    }
}

}  // namespace cellkeep::image
