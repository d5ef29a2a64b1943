// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/requirements.hpp"

#include "protocol/support/text.hpp"

#include <algorithm>

namespace cellkeep::environments {

namespace {

constexpr std::string_view kBlank = " \t\r";
constexpr std::string_view kAlphanumeric =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
constexpr std::string_view kHash = "--hash=";

Error bad_requirement(const std::string& what) {
    return {ErrorCode::kInvalidArgument, what};
}

bool has_only(std::string_view text, std::string_view others) {
    for (const char c : text) {
        if (kAlphanumeric.find(c) == std::string_view::npos &&
            others.find(c) == std::string_view::npos) {
            return false;
        }
    }
    return true;
}

/// As pip does it: "#" begins a comment at the line's begin or after a blank.
std::string_view without_comment(std::string_view line) {
    for (std::size_t at = line.find('#'); at != std::string_view::npos;
         at = line.find('#', at + 1)) {
        if (at == 0 || kBlank.find(line[at - 1]) != std::string_view::npos) {
            return line.substr(0, at);
        }
    }
    return line;
}

/// NAME[EXTRA,…] VERSIONS; MARKER --hash=ALGORITHM:DIGEST …
Status check_requirement(std::string_view line) {
    if (line.front() == '-') {
        return bad_requirement(
            "options are not taken: --index names the index, and every line a package");
    }
    std::string_view requirement = line;
    std::string_view hashes;
    if (const std::size_t at = line.find(" --"); at != std::string_view::npos) {
        requirement = trim(line.substr(0, at), kBlank);
        hashes = trim(line.substr(at), kBlank);
    }
    while (!hashes.empty()) {
        const std::size_t end = std::min(hashes.find(' '), hashes.size());
        const std::string_view one = hashes.substr(0, end);
        if (!one.starts_with(kHash) || !has_only(one.substr(kHash.size()), ":")) {
            return bad_requirement("of a line's options only --hash is taken");
        }
        hashes = trim(hashes.substr(end), kBlank);
    }
    const std::size_t semicolon = std::min(requirement.find(';'), requirement.size());
    const std::string_view wanted = requirement.substr(0, semicolon);
    if (wanted.empty() || !has_only(wanted, "._-[],<>=!~*+() \t") ||
        kAlphanumeric.find(wanted.front()) == std::string_view::npos) {
        return bad_requirement(
            "only packages of the index are taken, by name: no address, file, folder or variable");
    }
    if (requirement.find(" -") != std::string_view::npos) {
        return bad_requirement("of a line's options only --hash is taken");
    }
    if (!has_only(requirement.substr(semicolon), "._-,<>=!~*+() \t;'\"")) {
        return bad_requirement("its marker holds what no marker has");
    }
    return ok();
}

}  // namespace

Result<std::string> parse_requirement(std::string_view text) {
    // A comment, and lines that belong together, are the file's and not the requirement's.
    if (text.find_first_of("\r\n\\#") != std::string_view::npos) {
        return bad_requirement("it is no requirement in one line");
    }
    if (text.size() > kRequirementsBytesMax) {
        return Error(ErrorCode::kLimitExceeded, "it is too long");
    }
    std::string requirement(trim(text, kBlank));
    std::replace(requirement.begin(), requirement.end(), '\t', ' ');
    if (requirement.empty()) {
        return bad_requirement("it names no package");
    }
    BOOST_OUTCOME_TRY(check_requirement(requirement));
    return requirement;
}

Result<std::vector<std::string>> parse_requirements(std::string_view text, std::size_t bytes_max) {
    if (text.size() > bytes_max) {
        return Error(
            ErrorCode::kLimitExceeded, "it has more than " + std::to_string(bytes_max) + " bytes");
    }
    std::vector<std::string> requirements;
    std::string logical;  // what lines that end with "\" have begun
    std::size_t number = 0;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = trim(without_comment(text.substr(0, end)), kBlank);
        text.remove_prefix(std::min(end + 1, text.size()));
        ++number;
        const bool goes_on = line.ends_with('\\');
        if (goes_on) {
            line = trim(line.substr(0, line.size() - 1), kBlank);
        }
        logical += (logical.empty() || line.empty() ? "" : " ") + std::string(line);
        std::replace(logical.begin(), logical.end(), '\t', ' ');
        if ((goes_on && !text.empty()) || logical.empty()) {
            continue;
        }
        BOOST_OUTCOME_TRY(
            with_context(check_requirement(logical), "line " + std::to_string(number)));
        requirements.push_back(std::move(logical));
        logical.clear();
        if (requirements.size() > kRequirementsMax) {
            return Error(
                ErrorCode::kLimitExceeded,
                "it has more than " + std::to_string(kRequirementsMax) + " requirements");
        }
    }
    if (requirements.empty()) {
        return bad_requirement("it names no package");
    }
    return requirements;
}

Status check_index(std::string_view url) {
    if (url.empty()) {
        return ok();
    }
    const bool web = url.starts_with("https://") || url.starts_with("http://");
    const std::size_t host = url.find("://") + 3;
    if (!web || url.size() > kIndexBytesMax || url.size() <= host || url[host] == '/' ||
        url.find_first_of(" \t\r\n\"'\\#$") != std::string_view::npos) {
        return Error(
            ErrorCode::kInvalidArgument,
            "that is no http or https address of an index",
            "For instance: --index https://packages.example/simple");
    }
    return ok();
}

std::string shown_index(std::string_view url) {
    if (url.empty()) {
        return std::string(kDefaultIndex);
    }
    const std::size_t host = url.find("://") + 3;
    const std::size_t path = std::min(url.find('/', host), url.size());
    const std::size_t at = url.substr(0, path).rfind('@');
    return at == std::string_view::npos || at < host
               ? std::string(url)
               : std::string(url.substr(0, host)) + std::string(url.substr(at + 1));
}

}  // namespace cellkeep::environments
