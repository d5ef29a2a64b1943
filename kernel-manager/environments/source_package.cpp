// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/source_package.hpp"

#include "kernel-manager/environments/distributions.hpp"
#include "kernel-manager/environments/package_name.hpp"
#include "protocol/support/text.hpp"

#include <algorithm>
#include <array>

namespace cellkeep::environments {

namespace {

constexpr std::string_view kNameCharacters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
constexpr std::string_view kWheelCharacters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+!";
constexpr std::string_view kWheelEnding = ".whl";
constexpr std::string_view kOption = " --";
/// NAME-VERSION[-BUILD]-PYTHON-ABI-PLATFORM.whl (PEP 427).
constexpr std::size_t kWheelPartsMin = 5;
constexpr std::size_t kWheelPartsMax = 6;

bool has_only_of(std::string_view text, std::string_view characters) {
    return text.find_first_not_of(characters) == std::string_view::npos;
}

std::vector<std::string_view> split_at_dashes(std::string_view text) {
    std::vector<std::string_view> parts;
    while (true) {
        const std::size_t dash = text.find('-');
        parts.push_back(text.substr(0, dash));
        if (dash == std::string_view::npos) {
            return parts;
        }
        text.remove_prefix(dash + 1);
    }
}

}  // namespace

Result<std::vector<std::string>> check_source_names(const std::vector<std::string>& names) {
    std::vector<std::string> checked;
    for (const std::string& name : names) {
        if (check_package(name).has_error() || !has_only_of(name, kNameCharacters)) {
            return Error(
                ErrorCode::kInvalidArgument,
                "\"" + name + "\" is no name of a package",
                "Name it alone, without a version: the requirements say which.");
        }
        std::string one = normalised(name);
        if (std::find(checked.begin(), checked.end(), one) == checked.end()) {
            checked.push_back(std::move(one));
        }
    }
    if (checked.size() > kSourcePackagesMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "more than " + std::to_string(kSourcePackagesMax) + " packages are not built");
    }
    return checked;
}

std::string name_in(std::string_view requirement) {
    return normalised(requirement.substr(0, requirement.find_first_not_of(kNameCharacters)));
}

std::vector<std::string> lines_about(
    const std::vector<std::string>& requirements, std::string_view name) {
    std::vector<std::string> lines;
    std::copy_if(
        requirements.begin(),
        requirements.end(),
        std::back_inserter(lines),
        [name](const std::string& line) { return name_in(line) == name; });
    if (lines.empty()) {
        lines.emplace_back(name);
    }
    return lines;
}

std::string without_hashes(std::string_view requirement) {
    return std::string(trim(requirement.substr(0, requirement.find(kOption)), " "));
}

Result<std::string> pin_built(std::string_view file, std::string_view name) {
    const Error refusal(
        ErrorCode::kProtocol, "its build gave something else than a wheel of " + std::string(name));
    if (file.size() > kWheelNameBytesMax || !file.ends_with(kWheelEnding)) {
        return refusal;
    }
    const auto parts = split_at_dashes(file.substr(0, file.size() - kWheelEnding.size()));
    const bool well_formed = parts.size() >= kWheelPartsMin && parts.size() <= kWheelPartsMax &&
                             std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
                                 return !part.empty() && has_only_of(part, kWheelCharacters);
                             });
    if (!well_formed || normalised(parts[0]) != name) {
        return refusal;
    }
    std::string pin = std::string(name) + "==" + std::string(parts[1]);
    if (check_package(pin).has_error()) {
        return refusal;
    }
    return pin;
}

}  // namespace cellkeep::environments
