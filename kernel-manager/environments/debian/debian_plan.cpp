// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/debian/debian_plan.hpp"

#include "kernel-manager/environments/debian/debian_order.hpp"
#include "protocol/support/text.hpp"

#include <utility>

namespace cellkeep::environments {

namespace {

constexpr std::string_view kAdds = "Inst ";
constexpr std::string_view kRemoves = "Remv ";

/// The text between two characters, which is taken away with what is before it; empty if there is
/// none.
std::string_view take_between(std::string_view& text, char open, char close) {
    const auto begin = text.find(open);
    const auto end = begin == std::string_view::npos ? begin : text.find(close, begin);
    if (end == std::string_view::npos) {
        return {};
    }
    const std::string_view found = text.substr(begin + 1, end - begin - 1);
    text.remove_prefix(end + 1);
    return found;
}

Error plan_changes_image(const std::string& name, std::string_view there, std::string_view other) {
    return {
        ErrorCode::kConflict,
        "it needs " + name + " " + std::string(other) + ", and sessions have " +
            std::string(there) + " of this machine",
        "Bring this machine's packages up to date (apt-get upgrade), or ask for versions that go "
        "together with it."};
}

/// "NAME [FORMER] (VERSION ORIGIN [ARCHITECTURE]) …", of which FORMER may be missing.
Result<DebianPackage> read_addition(std::string_view line, const std::string& architecture) {
    const std::string all(line);
    DebianPackage package;
    package.name = line.substr(0, line.find(' '));
    line.remove_prefix(package.name.size());
    package.name = package.name.substr(0, package.name.find(':'));
    std::string_view former;
    if (trim(line).starts_with('[')) {
        former = take_between(line, '[', ']');
    }
    std::string_view what = take_between(line, '(', ')');
    package.version = what.substr(0, what.find(' '));
    const auto bracket = what.rfind('[');
    std::string_view rest = bracket == std::string_view::npos ? "" : what.substr(bracket);
    package.architecture = take_between(rest, '[', ']');
    if (!is_debian_name(package.name) || !is_debian_version(package.version) ||
        package.architecture.empty()) {
        return Error(ErrorCode::kProtocol, "apt-get says what is no package: " + all);
    }
    if (!former.empty()) {
        return plan_changes_image(package.name, former, package.version);
    }
    if (package.architecture != architecture && package.architecture != "all") {
        return Error(
            ErrorCode::kInvalidArgument,
            package.name + " is of the architecture " + package.architecture +
                ", and sessions are of " + architecture);
    }
    return package;
}

}  // namespace

Result<std::vector<DebianPackage>> read_debian_plan(
    std::string_view said, const std::string& architecture) {
    std::vector<DebianPackage> packages;
    while (!said.empty()) {
        const std::string_view line = said.substr(0, said.find('\n'));
        said.remove_prefix(line.size() < said.size() ? line.size() + 1 : said.size());
        if (line.starts_with(kRemoves)) {
            return Error(
                ErrorCode::kConflict,
                "what sessions have would have to go: " +
                    std::string(line.substr(kRemoves.size())));
        }
        if (!line.starts_with(kAdds)) {
            continue;  // "Conf …" for each, notes
        }
        BOOST_OUTCOME_TRY(
            DebianPackage package, read_addition(line.substr(kAdds.size()), architecture));
        packages.push_back(std::move(package));
        if (packages.size() > kDebianPackagesMax) {
            return Error(
                ErrorCode::kLimitExceeded,
                "they need more than " + std::to_string(kDebianPackagesMax) +
                    " packages of Debian together");
        }
    }
    return packages;
}

Status check_versions_there(
    const std::vector<std::string>& wanted, const std::map<std::string, std::string>& there) {
    for (const std::string& package : wanted) {
        const auto equals = package.find('=');
        const auto known = there.find(package.substr(0, equals));
        if (equals != std::string::npos && known != there.end() &&
            known->second != package.substr(equals + 1)) {
            return plan_changes_image(known->first, known->second, package.substr(equals + 1));
        }
    }
    return ok();
}

std::string file_of(const DebianPackage& package) {
    std::string version;
    for (const char character : package.version) {
        version += character == ':' ? std::string("%3a") : std::string(1, character);
    }
    return package.name + "_" + version + "_" + package.architecture + ".deb";
}

}  // namespace cellkeep::environments
