// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/package_name.hpp"

#include "protocol/support/text.hpp"

#include <array>

namespace cellkeep::environments {

namespace {

constexpr std::string_view kLettersAndDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

bool is_plain(char c) {
    return kLettersAndDigits.find(c) != std::string_view::npos;
}

/// Letters, digits and these characters, with a letter or a digit at both ends.
bool is_word(std::string_view text, std::string_view others) {
    if (text.empty() || !is_plain(text.front()) || !is_plain(text.back())) {
        return false;
    }
    for (const char c : text) {
        if (!is_plain(c) && others.find(c) == std::string_view::npos) {
            return false;
        }
    }
    return true;
}

/// Calls take for each part between commas until one call returns false.
template <typename Take>
bool each_part(std::string_view list, const Take& take) {
    while (true) {
        const std::size_t comma = list.find(',');
        if (!take(trim(list.substr(0, comma), " "))) {
            return false;
        }
        if (comma == std::string_view::npos) {
            return true;
        }
        list.remove_prefix(comma + 1);
    }
}

/// "==2.1", "~= 4.9", "!=1.*".
bool is_comparison(std::string_view text) {
    // The longer ones first: "==" begins "===".
    static constexpr std::array<std::string_view, 8> kComparisons = {
        "===", "==", "~=", "!=", "<=", ">=", "<", ">"};
    for (const std::string_view comparison : kComparisons) {
        if (text.starts_with(comparison)) {
            std::string_view version = trim(text.substr(comparison.size()), " ");
            if (version.ends_with(".*")) {
                version.remove_suffix(2);
            }
            return is_word(version, ".!+-_");
        }
    }
    return false;
}

Error bad_package(const std::string& what) {
    return {
        ErrorCode::kInvalidArgument,
        what,
        "A package is a name with extras and versions, such as \"rich\" or "
        "\"pandas[excel]>=2,<3\"."};
}

}  // namespace

Status check_package(std::string_view text) {
    if (text.empty() || text.size() > kOrderedPackageBytesMax) {
        return bad_package("must have 1 to " + std::to_string(kOrderedPackageBytesMax) + " bytes");
    }
    const std::size_t end = text.find_first_of("[<>=!~ ");
    if (!is_word(text.substr(0, end), "._-")) {
        return bad_package("must begin with the name of a package");
    }
    std::string_view rest = end == std::string_view::npos ? "" : trim(text.substr(end), " ");
    if (rest.starts_with('[')) {
        const std::size_t close = rest.find(']');
        if (close == std::string_view::npos ||
            !each_part(rest.substr(1, close - 1), [](std::string_view extra) {
                return is_word(extra, "._-");
            })) {
            return bad_package("must have extras as in \"name[one,two]\"");
        }
        rest = trim(rest.substr(close + 1), " ");
    }
    if (!rest.empty() && !each_part(rest, is_comparison)) {
        return bad_package("must have versions as in \"name>=2,<3\", and nothing after them");
    }
    return ok();
}

}  // namespace cellkeep::environments
