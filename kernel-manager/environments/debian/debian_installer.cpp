// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/debian/debian_installer.hpp"

#include "kernel-manager/environments/debian/apt_get.hpp"
#include "kernel-manager/environments/debian/debian_host.hpp"
#include "kernel-manager/environments/debian/debian_plan.hpp"
#include "kernel-manager/environments/debian/package_archive.hpp"
#include "kernel-manager/environments/debian/system_alternatives.hpp"
#include "kernel-manager/environments/debian/system_tree.hpp"
#include "kernel-manager/environments/operator_tool.hpp"
#include "protocol/support/text.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>
#include <vector>

namespace cellkeep::environments {

namespace {

constexpr const char* kAptFolder = "/apt";
constexpr const char* kUnpackFolder = "/unpack";
constexpr const char* kLoaderFolder = "/etc/ld.so.conf.d";
constexpr std::size_t kLoaderFileBytesMax = 64UL << 10U;
constexpr const char* kToolHint = "It is in Debian's package apt (dpkg for dpkg-deb).";

Status make_private_folder(const std::string& path) {
    return ::mkdir(path.c_str(), S_IRWXU) == 0 ? Status(ok())
                                               : Error::from_errno(errno, "mkdir(" + path + ")");
}

/// A folder of libraries that may be a part of LD_LIBRARY_PATH.
bool is_library_folder(std::string_view line) {
    return (line.starts_with("/usr/") || line.starts_with("/opt/")) &&
           std::all_of(line.begin(), line.end(), [](char character) {
               return character > ' ' && character <= '~' && character != ':' && character != ';' &&
                      character != '$';
           });
}

/// What the loader of a system would get from ldconfig(8): the folders that the packages name.
Result<std::vector<std::string>> find_library_folders(const SystemTree& tree) {
    std::vector<std::string> folders;
    for (const std::string& name : tree.names_in(kLoaderFolder)) {
        const auto text = tree.read(std::string(kLoaderFolder) + "/" + name, kLoaderFileBytesMax);
        if (!name.ends_with(".conf") || text.has_error()) {
            continue;  // as ldconfig(8) does; a link may lead to what a script would have made
        }
        for (std::string_view rest = text.value(); !rest.empty();) {
            const std::string_view line = rest.substr(0, rest.find('\n'));
            rest.remove_prefix(line.size() < rest.size() ? line.size() + 1 : rest.size());
            std::string folder(trim(line.substr(0, line.find('#'))));
            if (is_library_folder(folder) && tree.holds(folder) &&
                std::find(folders.begin(), folders.end(), folder) == folders.end()) {
                folders.push_back(std::move(folder));
            }
        }
    }
    if (folders.size() > kLibraryFoldersMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "they name more than " + std::to_string(kLibraryFoldersMax) + " folders of libraries");
    }
    return folders;
}

/// What the sandbox has there itself stays. Links on the way can lead files to such a place.
Status check_places(const SystemTree& tree) {
    for (const std::string folder : {"/etc", "/opt"}) {
        for (const std::string& name : tree.names_in(folder)) {
            if (place_in_system(folder.substr(1) + "/" + name).empty()) {
                return Error(
                    ErrorCode::kProtocol,
                    "they bring " + folder + "/" + name + " by a link, which is the sandbox's own");
            }
        }
    }
    return ok();
}

Status check_mounts(const SystemTree& tree) {
    BOOST_OUTCOME_TRY(check_places(tree));
    const std::size_t folders = tree.names_in("/etc").size() + tree.names_in("/opt").size();
    if (folders > kSystemFoldersMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "they have " + std::to_string(folders) +
                " entries in /etc and /opt, and sessions see " + std::to_string(kSystemFoldersMax) +
                " at most");
    }
    return ok();
}

}  // namespace

Result<std::string> find_apt_get() {
    return find_tool({"apt-get", "CELLKEEP_APT_GET", kToolHint});
}

Result<std::string> find_dpkg_deb() {
    return find_tool({"dpkg-deb", "CELLKEEP_DPKG_DEB", kToolHint});
}

Result<DebianRecord> install_debian_packages(
    const DebianOrder& order,
    const DebianInstallation& installation,
    const image::Progress& progress) {
    DebianRecord record;
    record.wanted = order.packages;
    BOOST_OUTCOME_TRY(record.release, find_debian_release());
    BOOST_OUTCOME_TRY(const ImagePackages image, find_image_packages(order.image_packages));
    record.image_packages = image.digest;
    BOOST_OUTCOME_TRY(check_versions_there(order.packages, image.versions));
    const std::string work = installation.scratch + kAptFolder;
    const std::string unpack = installation.scratch + kUnpackFolder;
    BOOST_OUTCOME_TRY(make_private_folder(work));
    BOOST_OUTCOME_TRY(make_private_folder(unpack));
    const AptGet apt(
        {order.apt_get,
         work,
         installation.scratch,
         installation.deadline,
         installation.download_bytes_max});
    BOOST_OUTCOME_TRY(apt.prepare(image.status));
    progress("asking apt-get what " + std::to_string(order.packages.size()) + " packages need");
    BOOST_OUTCOME_TRY(const std::string said, apt.simulate(order.packages));
    BOOST_OUTCOME_TRY(const auto plan, read_debian_plan(said, image.architecture));
    if (!plan.empty()) {
        progress("fetching " + std::to_string(plan.size()) + " packages of Debian");
        BOOST_OUTCOME_TRY(apt.download(plan));
    }
    BOOST_OUTCOME_TRY(
        SystemTree tree, SystemTree::create(installation.directory, installation.bytes_max));
    std::vector<AlternativeOffer> alternatives;
    const UnpackOrder unpacking{
        order.dpkg_deb, unpack, installation.deadline, installation.download_bytes_max};
    for (const DebianPackage& package : plan) {
        BOOST_OUTCOME_TRY(
            const UnpackedPackage unpacked,
            with_context(
                unpack_package(apt.path_of(package), package, unpacking, tree),
                "package " + package.name));
        record.packages.emplace(package.name, package.version);
        if (unpacked.does_more) {
            record.scripts_not_run.push_back(package.name);
        }
        alternatives.insert(
            alternatives.end(), unpacked.alternatives.begin(), unpacked.alternatives.end());
    }
    BOOST_OUTCOME_TRY(link_alternatives(alternatives, image.files, tree));
    BOOST_OUTCOME_TRY(record.library_folders, find_library_folders(tree));
    BOOST_OUTCOME_TRY(check_mounts(tree));
    std::sort(record.scripts_not_run.begin(), record.scripts_not_run.end());
    return record;
}

}  // namespace cellkeep::environments
