// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/debian/debian_order.hpp"

#include <algorithm>
#include <map>

namespace cellkeep::environments {

namespace {

constexpr std::string_view kDebianNameStarts = "abcdefghijklmnopqrstuvwxyz0123456789";
constexpr std::string_view kDebianNameCharacters = "abcdefghijklmnopqrstuvwxyz0123456789+-.";
constexpr std::string_view kVersionStarts = "0123456789";
constexpr std::string_view kDebianVersionCharacters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.+-~:";

}  // namespace

bool is_debian_name(std::string_view text) {
    return text.size() >= 2 && text.size() <= kDebianNameBytesMax &&
           kDebianNameStarts.find(text.front()) != std::string_view::npos && text.back() != '-' &&
           text.find_first_not_of(kDebianNameCharacters) == std::string_view::npos;
}

bool is_debian_version(std::string_view text) {
    return !text.empty() && text.size() <= kDebianVersionBytesMax &&
           kVersionStarts.find(text.front()) != std::string_view::npos &&
           // apt-get takes them for "remove" and "install" (apt-get(8)).
           text.back() != '-' && text.back() != '+' &&
           text.find_first_not_of(kDebianVersionCharacters) == std::string_view::npos;
}

Result<std::vector<std::string>> check_debian_packages(const std::vector<std::string>& packages) {
    if (packages.size() > kDebianWantedMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "more than " + std::to_string(kDebianWantedMax) + " packages of Debian are asked for");
    }
    std::map<std::string, std::string> versions;
    for (const std::string& package : packages) {
        const auto equals = package.find('=');
        const std::string name = package.substr(0, equals);
        const std::string version =
            equals == std::string::npos ? std::string() : package.substr(equals + 1);
        if (!is_debian_name(name) || (equals != std::string::npos && !is_debian_version(version))) {
            return Error(
                ErrorCode::kInvalidArgument,
                "\"" + package.substr(0, kDebianNameBytesMax) +
                    "\" is no name of a package of Debian, and no NAME=VERSION");
        }
        const auto [known, added] = versions.emplace(name, version);
        if (!added && known->second != version) {
            return Error(ErrorCode::kInvalidArgument, name + " is asked for in two versions");
        }
    }
    std::vector<std::string> checked;
    checked.reserve(versions.size());
    for (const auto& [name, version] : versions) {
        checked.push_back(version.empty() ? name : name + "=" + version);
    }
    return checked;
}

}  // namespace cellkeep::environments
