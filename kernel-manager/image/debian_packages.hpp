// SPDX-License-Identifier: Apache-2.0
//
// What dpkg says is installed: packages, what they need, and their files. Reads dpkg's database
// (/var/lib/dpkg), never runs dpkg. Values; any thread.
#pragma once

#include "protocol/support/result.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::image {

struct Package {
    std::string name;
    std::string version;
    std::string architecture;
    /// Each a choice: the first that is installed counts.
    std::vector<std::vector<std::string>> depends;
};

/// Of their names, versions and architectures, in that order: "sha256:…".
std::string digest_of(const std::vector<const Package*>& packages);

class PackageDatabase {
 public:
    /// kNotFound if there is no such database: not a Debian system.
    static Result<PackageDatabase> load(const std::string& admin_directory);
    /// The text of dpkg's status file.
    static PackageDatabase parse(std::string_view status, std::string admin_directory);

    /// The named packages that are installed and all they need, by name. Recommendations are left
    /// out.
    std::vector<const Package*> closure(const std::vector<std::string>& names) const;
    bool installed(const std::string& name) const { return packages_.contains(name); }
    /// Absolute paths, directories included; those of a merged /usr as they are there.
    Result<std::vector<std::string>> files(const Package& package) const;

 private:
    std::string admin_directory_;
    std::map<std::string, Package, std::less<>> packages_;
    std::map<std::string, std::string, std::less<>> providers_;  // virtual name to package
};

}  // namespace cellkeep::image
