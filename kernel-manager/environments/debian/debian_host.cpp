// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/debian/debian_host.hpp"

#include "kernel-manager/image/debian_packages.hpp"
#include "kernel-manager/image/environment_recipe.hpp"
#include "protocol/support/syscall.hpp"
#include "protocol/support/text.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace cellkeep::environments {

namespace {

constexpr const char* kDpkgFolder = "/var/lib/dpkg";
constexpr std::size_t kDpkgStatusBytesMax = 256UL << 20U;
constexpr std::size_t kReleaseBytesMax = 64UL << 10U;
/// All programs of a session need it, and it is of the machine's own architecture.
constexpr const char* kAlwaysThere = "libc6";

/// The text behind "KEY=" without its quotes; "" if the line is another one.
std::string_view value_behind(std::string_view line, std::string_view key) {
    if (!line.starts_with(key) || !line.substr(key.size()).starts_with('=')) {
        return {};
    }
    return trim(line.substr(key.size() + 1), " \t\r\"'");
}

/// Up to the separator, which is taken away, too.
std::string_view take_part(std::string_view& text, std::string_view separator) {
    const auto end = text.find(separator);
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + separator.size());
    return part;
}

bool is_plain_word(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char one) {
        return (one >= 'a' && one <= 'z') || (one >= '0' && one <= '9') || one == '-' ||
               one == '.' || one == '_';
    });
}

Error no_debian(const std::string& what) {
    return {
        ErrorCode::kUnavailable,
        what,
        "--apt works where Debian, or a system that is made of it, is installed."};
}

}  // namespace

std::string debian_release_of(std::string_view text) {
    std::string_view id;
    std::string_view codename;
    while (!text.empty()) {
        const std::string_view line = take_part(text, "\n");
        id = id.empty() ? value_behind(line, "ID") : id;
        codename = codename.empty() ? value_behind(line, "VERSION_CODENAME") : codename;
    }
    return is_plain_word(id) && is_plain_word(codename)
               ? std::string(id) + " " + std::string(codename)
               : std::string();
}

Result<std::string> find_debian_release() {
    for (const char* path : {"/etc/os-release", "/usr/lib/os-release"}) {
        if (const auto text = read_file(path, kReleaseBytesMax); text.has_value()) {
            std::string release = debian_release_of(text.value());
            if (!release.empty()) {
                return release;
            }
        }
    }
    return no_debian("this machine's os-release names no release");
}

std::string status_about(std::string_view status, const std::set<std::string, std::less<>>& names) {
    std::string text;
    while (!status.empty()) {
        const std::string_view paragraph = take_part(status, "\n\n");
        std::string_view name;
        bool installed = false;
        for (std::string_view rest = paragraph; !rest.empty();) {
            const std::string_view line = take_part(rest, "\n");
            if (line.starts_with("Package:")) {
                name = trim(line.substr(line.find(':') + 1));
            } else if (line.starts_with("Status:")) {
                installed = line.ends_with(" installed");
            }
        }
        if (installed && names.contains(name)) {
            text += std::string(trim(paragraph, "\n")) + "\n\n";
        }
    }
    return text;
}

Result<ImagePackages> find_image_packages(const std::vector<std::string>& names) {
    const auto database = image::PackageDatabase::load(kDpkgFolder);
    const auto status = read_file(std::string(kDpkgFolder) + "/status", kDpkgStatusBytesMax);
    if (database.has_error() || status.has_error()) {
        return no_debian("this machine has no packages of Debian");
    }
    ImagePackages found;
    std::set<std::string, std::less<>> known;
    // As that of an image: neither counts what single languages of a server need besides.
    found.digest = image::digest_of(database.value().closure(image::default_packages()));
    for (const image::Package* package : database.value().closure(names)) {
        known.insert(package->name);
        found.versions.emplace(package->name, package->version);
        if (package->name == kAlwaysThere) {
            found.architecture = package->architecture;
        }
        BOOST_OUTCOME_TRY(const auto files, database.value().files(*package));
        found.files.insert(files.begin(), files.end());
    }
    found.status = status_about(status.value(), known);
    return found.architecture.empty()
               ? Result<ImagePackages>(no_debian("this machine has no libc6 of Debian's"))
               : Result<ImagePackages>(std::move(found));
}

}  // namespace cellkeep::environments
