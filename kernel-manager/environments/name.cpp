// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/name.hpp"

#include "protocol/kernel_json.hpp"

namespace cellkeep::environments {

static_assert(kKernelPrefix.size() + kNameBytesMax == protocol::kLanguageBytesMax);

Status check_name(std::string_view name) {
    constexpr std::string_view kFirst = "abcdefghijklmnopqrstuvwxyz0123456789";
    constexpr std::string_view kOthers = "abcdefghijklmnopqrstuvwxyz0123456789_-";
    if (name == kDefaultEnvironment) {
        return Error(
            ErrorCode::kInvalidArgument,
            "the environment \"default\" is what the installation brings",
            "Choose another name.");
    }
    if (name.empty() || name.size() > kNameBytesMax ||
        kFirst.find(name.front()) == std::string_view::npos ||
        name.find_first_not_of(kOthers) != std::string_view::npos) {
        return Error(
            ErrorCode::kInvalidArgument,
            "that is no name of an environment",
            "A name has at most " + std::to_string(kNameBytesMax) +
                " lower-case letters, digits, _ and -, and begins with a letter or a digit.");
    }
    return ok();
}

std::string offered_name(std::string_view language, std::string_view environment) {
    if (environment.empty() || environment == kDefaultEnvironment) {
        return std::string(language);
    }
    return std::string(kKernelPrefix) + std::string(environment);
}

}  // namespace cellkeep::environments
