// SPDX-License-Identifier: Apache-2.0
//
// What this machine is and has, of Debian: its release, and of its packages those that sessions
// have, too. Reads os-release(5) and dpkg's database. Blocks: not for the event loop.
#pragma once

#include "protocol/support/result.hpp"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::environments {

/// "debian bookworm". kUnavailable if this is no release with a name.
Result<std::string> find_debian_release();
/// The same of the text of an os-release file; "" if it has none. Pure.
std::string debian_release_of(std::string_view text);

struct ImagePackages {
    std::string status;                           // their paragraphs of dpkg's status file
    std::map<std::string, std::string> versions;  // by name
    std::string architecture;                     // of this machine: "amd64"
    std::set<std::string, std::less<>> files;     // absolute, beneath a merged /usr
    std::string digest;                           // image::RecipeKey::packages, of this machine
};

/// Of the named packages that are installed and all they need. kUnavailable on a machine without
/// dpkg's database.
Result<ImagePackages> find_image_packages(const std::vector<std::string>& names);

/// The paragraphs of a status file that are about installed packages of these names. Pure.
std::string status_about(std::string_view status, const std::set<std::string, std::less<>>& names);

}  // namespace cellkeep::environments
