// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/languages/system_packages.hpp"

#include "kernel-manager/environments/debian/debian_installer.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

namespace cellkeep::session {

namespace fs = std::filesystem;

namespace {

constexpr const char* kUsr = "/usr";
constexpr const char* kGames = "/usr/games";
constexpr const char* kLibraryPath = "LD_LIBRARY_PATH=";

bool is_usr(const sandbox::ReadOnlyPath& path) {
    return path.target == kUsr;
}

bool is_folder(const std::string& path) {
    std::error_code error;
    return fs::is_directory(fs::symlink_status(path, error));
}

/// Absolute, as a session sees them: what lies directly in these folders of the tree. Links are
/// left out: a mount of one follows it on the host.
std::set<std::string> entries_in(const std::string& tree) {
    std::set<std::string> found;
    for (const std::string folder : {"/etc", "/opt"}) {
        std::error_code error;
        fs::directory_iterator at(tree + folder, error);
        for (const fs::directory_iterator end; !error && at != end; at.increment(error)) {
            std::error_code gone;
            const fs::file_status status = fs::symlink_status(at->path(), gone);
            if (fs::is_directory(status) || fs::is_regular_file(status)) {
                found.insert(folder + "/" + at->path().filename().string());
            }
        }
    }
    return found;
}

}  // namespace

Status check_system_packages(
    const KernelSpec& python, const environments::NamedRecord& record, const std::string& release) {
    const environments::DebianRecord& debian = record.debian;
    if (debian.packages.empty()) {
        return ok();
    }
    if (debian.release != release) {
        return Error(
            ErrorCode::kUnavailable,
            "its packages are of " + debian.release + ", and this machine is of " +
                (release.empty() ? "no release that is known" : release),
            "Make it again: cellkeep env update " + record.name);
    }
    if (std::none_of(python.read_only.begin(), python.read_only.end(), is_usr)) {
        return Error(
            ErrorCode::kUnavailable,
            "its packages of Debian go together with the private image, and sessions see the "
            "host's own files",
            "Start the server without --image=host.");
    }
    return ok();
}

std::string find_remark(const KernelSpec& python, const environments::NamedRecord& record) {
    const environments::DebianRecord& debian = record.debian;
    if (debian.packages.empty() || debian.image_packages.empty() || python.image_packages.empty() ||
        debian.image_packages == python.image_packages) {
        return {};
    }
    return "its packages of Debian were chosen beside " + debian.image_packages +
           ", and the image that sessions run from has " + python.image_packages +
           ". If one of them does not work: stop the server, cellkeep env update " + record.name +
           ", and start it again.";
}

void add_system_packages(
    const environments::NamedRecord& record, const image::ImageInUse& files, KernelSpec& spec) {
    if (record.debian.packages.empty()) {
        return;
    }
    const std::string tree = files.root + environments::kSystemFolder;
    std::set<std::string> own = entries_in(tree);
    for (sandbox::ReadOnlyPath& path : spec.read_only) {
        if ((is_usr(path) || own.contains(path.target)) && is_folder(tree + path.target)) {
            path.over = tree + path.target;
        }
        own.erase(path.target);
    }
    for (const std::string& target : own) {
        spec.read_only.push_back(
            {.source = tree + target,
             .target = target,
             .executable = !target.starts_with("/etc/")});
    }
    for (std::string& variable : spec.env) {
        if (variable.starts_with("PATH=") && is_folder(tree + kGames)) {
            variable += std::string(":") + kGames;
        }
    }
    std::string libraries;
    for (const std::string& folder : record.debian.library_folders) {
        libraries += (libraries.empty() ? "" : ":") + folder;
    }
    if (!libraries.empty()) {
        spec.env.push_back(kLibraryPath + libraries);
    }
}

}  // namespace cellkeep::session
