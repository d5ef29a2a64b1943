// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/node/node_manifest.hpp"

#include "protocol/json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <string_view>

namespace cellkeep::environments {

namespace {

constexpr std::string_view kModules = "node_modules/";
constexpr std::string_view kNodeNameCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
/// Of semver's ranges: npm-registry tags ("latest") besides versions and comparisons.
constexpr std::string_view kRangeCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._+ <>=^~*|";

/// Members that say what is installed, and that are not followed here.
constexpr std::array kNotTaken{
    "optionalDependencies", "overrides", "workspaces", "bundleDependencies", "bundledDependencies"};

Error refuse_manifest(const std::string& what, const std::string& hint = "") {
    return {ErrorCode::kInvalidArgument, what, hint};
}

bool consists_of(std::string_view text, std::string_view characters) {
    return text.find_first_not_of(characters) == std::string_view::npos;
}

bool is_plain_name(std::string_view name) {
    return !name.empty() && name.front() != '.' && name.front() != '-' &&
           consists_of(name, kNodeNameCharacters);
}

/// "lodash", "@types/node".
bool is_node_name(std::string_view name) {
    if (name.size() > kNodeNameBytesMax) {
        return false;
    }
    if (!name.starts_with('@')) {
        return is_plain_name(name);
    }
    const std::size_t slash = std::min(name.find('/'), name.size());
    return slash < name.size() && is_plain_name(name.substr(1, slash - 1)) &&
           is_plain_name(name.substr(slash + 1));
}

Status check_dependency(const std::string& name, const nlohmann::json& range) {
    if (!is_node_name(name)) {
        return refuse_manifest("dependencies: a name that is no package's");
    }
    if (!range.is_string() || range.get_ref<const std::string&>().size() > kNodeRangeBytesMax) {
        return refuse_manifest("dependencies: " + name + " has no range of versions");
    }
    if (!consists_of(range.get_ref<const std::string&>(), kRangeCharacters)) {
        return refuse_manifest(
            "dependencies: " + name + " is not taken from a registry",
            "Only versions of the registry are taken: no address, repository, folder or other "
            "package's name.");
    }
    return ok();
}

Status check_members(const nlohmann::json& manifest) {
    for (const char* member : kNotTaken) {
        const auto found = manifest.find(member);
        if (found != manifest.end() && !found->empty()) {
            return refuse_manifest(
                std::string(member) + " is not taken", "Name what you need in dependencies.");
        }
    }
    return ok();
}

/// "^1.2" or, as packages among themselves do, "npm:other@^1.2".
bool is_of_registry(const nlohmann::json& wanted) {
    constexpr std::string_view kAlias = "npm:";
    if (!wanted.is_string()) {
        return false;
    }
    std::string_view text = wanted.get_ref<const std::string&>();
    if (text.starts_with(kAlias)) {
        const std::size_t at = text.find('@', kAlias.size() + 1);
        const std::string_view name = text.substr(0, at).substr(kAlias.size());
        return is_node_name(name) &&
               (at == std::string_view::npos || consists_of(text.substr(at + 1), kRangeCharacters));
    }
    return consists_of(text, kRangeCharacters);
}

/// What an installed package needs may lead elsewhere.
bool needs_registry_only(const nlohmann::json& entry) {
    for (const char* member : {"dependencies", "optionalDependencies"}) {
        const auto found = entry.find(member);
        if (found != entry.end() &&
            (!found->is_object() || !std::all_of(found->begin(), found->end(), is_of_registry))) {
            return false;
        }
    }
    return true;
}

/// One entry of what was installed; nothing of a place that is not a package's.
Result<std::string> version_of(const std::string& place, const nlohmann::json& entry) {
    const auto text = [&entry](const char* member) {
        const auto found = entry.find(member);
        return found != entry.end() && found->is_string() ? found->get<std::string>() : "";
    };
    const bool in_another = entry.value("inBundle", nlohmann::json(false)) == true;
    const std::string from = text("resolved");
    const bool of_registry =
        from.empty() || from.starts_with("https://") || from.starts_with("http://");
    if (entry.value("link", nlohmann::json(false)) == true || !of_registry ||
        (text("integrity").empty() && !in_another)) {
        return refuse_manifest(place + " is not of the registry, or has no hash there");
    }
    if (!needs_registry_only(entry)) {
        return refuse_manifest(place + " needs a package that is not of the registry");
    }
    std::string version = text("version");
    if (version.empty() || version.size() > kNodeRangeBytesMax ||
        !consists_of(version, kRangeCharacters)) {
        return Error(ErrorCode::kProtocol, "a package says of itself what is no version");
    }
    return version;
}

}  // namespace

Result<NodeDependencies> read_node_manifest(std::string_view text) {
    if (text.size() > kNodeManifestBytesMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "it has more than " + std::to_string(kNodeManifestBytesMax) + " bytes");
    }
    BOOST_OUTCOME_TRY(
        const nlohmann::json manifest, protocol::parse_json_object(text, "package.json"));
    BOOST_OUTCOME_TRY(check_members(manifest));
    const auto found = manifest.find("dependencies");
    if (found == manifest.end() || !found->is_object() || found->empty()) {
        return refuse_manifest("it has no dependencies");
    }
    if (found->size() > kNodeDependenciesMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "it has more than " + std::to_string(kNodeDependenciesMax) + " dependencies");
    }
    NodeDependencies dependencies;
    for (const auto& [name, range] : found->items()) {
        BOOST_OUTCOME_TRY(check_dependency(name, range));
        dependencies.emplace(name, range.get<std::string>());
    }
    return dependencies;
}

std::string node_manifest_of(const NodeDependencies& dependencies) {
    return nlohmann::json{{"private", true}, {"dependencies", dependencies}}.dump(2) + "\n";
}

Result<std::map<std::string, std::string>> read_installed(std::string_view text) {
    BOOST_OUTCOME_TRY(
        const nlohmann::json installed, protocol::parse_json_object(text, "npm's own list"));
    const auto packages = installed.find("packages");
    if (packages == installed.end() || !packages->is_object()) {
        return Error(ErrorCode::kProtocol, "npm does not say what it has installed");
    }
    if (packages->size() > kNodePackagesMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "it would have more than " + std::to_string(kNodePackagesMax) + " packages");
    }
    std::map<std::string, std::string> versions;
    for (const auto& [place, entry] : packages->items()) {
        if (!place.starts_with(kModules) || !entry.is_object()) {
            return refuse_manifest("a package would be outside of node_modules");
        }
        BOOST_OUTCOME_TRY(std::string version, version_of(place, entry));
        versions.emplace(place.substr(kModules.size()), std::move(version));
    }
    return versions;
}

}  // namespace cellkeep::environments
