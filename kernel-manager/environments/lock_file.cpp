// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/lock_file.hpp"

#include "kernel-manager/environments/requirements.hpp"
#include "protocol/support/text.hpp"
#include "protocol/support/toml_depth.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace cellkeep::environments {

namespace {

constexpr const char* kVersionField = "lock-version";
constexpr std::string_view kVersionsRead = "1.";
constexpr std::string_view kVersionCharacters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-+!";
constexpr std::array kStrongHashes{"--hash=sha256:", "--hash=sha384:", "--hash=sha512:"};

Error no_lock(const std::string& what) {
    return {ErrorCode::kInvalidArgument, what};
}

std::string text_in(const toml::table& table, std::string_view name) {
    return table[name].value_or(std::string());
}

/// "" if the lock does not tell it.
std::string file_name(const toml::table& wheel) {
    std::string name = text_in(wheel, "name");
    for (const char* place : {"url", "path"}) {
        if (name.empty()) {
            const std::string whole = text_in(wheel, place);
            name = whole.substr(whole.rfind('/') + 1);
        }
    }
    return name;
}

/// Wheels for other machines would be most of the hashes.
bool may_be_used(const toml::table& wheel) {
    const std::string name = file_name(wheel);
    return name.empty() || name.ends_with("-any.whl") || name.find("x86_64") != std::string::npos;
}

/// " --hash=sha256:…" for each wheel; all: also those of other machines.
Result<std::string> hashes_of(const toml::array& wheels, bool all) {
    std::string hashes;
    for (const toml::node& one : wheels) {
        const toml::table* wheel = one.as_table();
        if (wheel == nullptr) {
            return no_lock("a wheel that is no table");
        }
        if (!all && !may_be_used(*wheel)) {
            continue;
        }
        const std::string digest = (*wheel)["hashes"]["sha256"].value_or(std::string());
        if (digest.empty()) {
            return no_lock("a wheel without its SHA-256");
        }
        hashes += " --hash=sha256:" + digest;
    }
    return hashes;
}

/// "NAME==VERSION" in front of a marker, and behind it hashes that cannot be made anew. Whatever
/// else names versions would let the installer leave the hashes alone.
Status check_locked(const std::string& line) {
    const std::string_view wanted = std::string_view(line).substr(0, line.find(" --"));
    const std::string_view package = trim(wanted.substr(0, wanted.find(';')));
    const std::size_t equal = package.find("==");
    const std::string_view version =
        equal == std::string_view::npos ? std::string_view() : trim(package.substr(equal + 2));
    const bool is_pinned = !version.empty() &&
                           version.find_first_not_of(kVersionCharacters) == std::string::npos &&
                           package.substr(0, equal).find_first_of("<>=!~()") == std::string::npos;
    std::string_view hashes = std::string_view(line).substr(wanted.size());
    bool is_hashed = !hashes.empty();
    while (is_hashed && !hashes.empty()) {
        hashes.remove_prefix(1);
        is_hashed = std::any_of(kStrongHashes.begin(), kStrongHashes.end(), [&](const char* one) {
            return hashes.starts_with(one);
        });
        hashes.remove_prefix(std::min(hashes.find(' '), hashes.size()));
    }
    if (is_pinned && is_hashed) {
        return ok();
    }
    return Error(
        ErrorCode::kInvalidArgument,
        std::string(wanted) + ": it has no version (==), or no hash (SHA-256)",
        "A lock names each package so: \"uv pip compile --generate-hashes\" makes one.");
}

Result<std::string> line_of(const toml::table& package) {
    for (const char* elsewhere : {"vcs", "directory", "archive"}) {
        if (package.contains(elsewhere)) {
            return no_lock(std::string("it is of no index (") + elsewhere + ")");
        }
    }
    const toml::array* wheels = package["wheels"].as_array();
    if (wheels == nullptr || wheels->empty()) {
        return Error(
            ErrorCode::kInvalidArgument,
            "it has no wheel",
            "Name its requirement with --requirements, and itself with --build-sdists.");
    }
    std::string line = text_in(package, "name") + "==" + text_in(package, "version");
    const std::string marker = text_in(package, "marker");
    if (!marker.empty()) {
        if (marker.find("extras") != std::string::npos ||
            marker.find("dependency_groups") != std::string::npos) {
            return Error(
                ErrorCode::kInvalidArgument,
                "it belongs to an extra or a group of dependencies",
                "Export the lock again with those that you want, and without a choice.");
        }
        line += "; " + marker;
    }
    // A marker may say that the package is of another machine.
    BOOST_OUTCOME_TRY(const std::string hashes, hashes_of(*wheels, !marker.empty()));
    if (hashes.empty()) {
        return no_lock("it has no wheel for x86-64");
    }
    BOOST_OUTCOME_TRY(std::string checked, parse_requirement(line + hashes));
    BOOST_OUTCOME_TRY(check_locked(checked));
    return checked;
}

Result<std::string> read_lock(const toml::table& lock) {
    if (!text_in(lock, kVersionField).starts_with(kVersionsRead)) {
        return no_lock("it is no lock of version 1 (PEP 751)");
    }
    const toml::array* packages = lock["packages"].as_array();
    if (packages == nullptr) {
        return no_lock("it has no packages");
    }
    std::string text;
    for (const toml::node& one : *packages) {
        const toml::table* package = one.as_table();
        if (package == nullptr) {
            return no_lock("a package that is no table");
        }
        BOOST_OUTCOME_TRY(
            const std::string line,
            with_context(line_of(*package), "package " + text_in(*package, "name")));
        text += line + "\n";
    }
    return text;
}

/// As pip-compile writes it.
Result<std::string> read_lines(std::string_view text) {
    BOOST_OUTCOME_TRY(const auto lines, parse_requirements(text, kLockFileBytesMax));
    std::string locked;
    for (const std::string& line : lines) {
        BOOST_OUTCOME_TRY(check_locked(line));
        locked += line + "\n";
    }
    return locked;
}

bool is_toml(std::string_view text) {
    return text.starts_with(kVersionField) ||
           text.find(std::string("\n") + kVersionField) != std::string_view::npos;
}

}  // namespace

Result<std::string> requirements_of_lock(std::string_view text) {
    if (text.size() > kLockFileBytesMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "it has more than " + std::to_string(kLockFileBytesMax) + " bytes");
    }
    if (!is_toml(text)) {
        return read_lines(text);
    }
    BOOST_OUTCOME_TRY(check_toml_depth(text));
    try {
        return read_lock(toml::parse(text));
    } catch (const toml::parse_error& failure) {
        return no_lock(
            "line " + std::to_string(failure.source().begin.line) +
            ": no TOML: " + std::string(failure.description()));
    }
}

}  // namespace cellkeep::environments
