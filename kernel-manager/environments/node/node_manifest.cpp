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

/// What a package needs may lead elsewhere. npm installs peers as well.
bool needs_registry_only(const nlohmann::json& entry) {
    for (const char* member : {"dependencies", "optionalDependencies", "peerDependencies"}) {
        const auto found = entry.find(member);
        if (found != entry.end() &&
            (!found->is_object() || !std::all_of(found->begin(), found->end(), is_of_registry))) {
            return false;
        }
    }
    return true;
}

/// "node_modules/@s/a/node_modules/b".
bool is_place_of_package(std::string_view place) {
    constexpr std::string_view kNext = "/node_modules/";
    if (!place.starts_with(kModules)) {
        return false;
    }
    place.remove_prefix(kModules.size());
    for (std::size_t end = place.find(kNext); end != std::string_view::npos;
         end = place.find(kNext)) {
        if (!is_node_name(place.substr(0, end))) {
            return false;
        }
        place.remove_prefix(end + kNext.size());
    }
    return is_node_name(place);
}

bool is_true(const nlohmann::json& entry, const char* member) {
    return entry.value(member, nlohmann::json(false)) != false;
}

/// The version. The place is that of a package.
Result<std::string> check_locked(const std::string& place, const nlohmann::json& entry) {
    const auto text = [&entry](const char* member) {
        const auto found = entry.find(member);
        return found != entry.end() && found->is_string() ? found->get<std::string>() : "";
    };
    const std::string from = text("resolved");
    const bool of_registry =
        from.empty() || from.starts_with("https://") || from.starts_with("http://");
    if (is_true(entry, "link") || !of_registry ||
        (text("integrity").empty() && !is_true(entry, "inBundle"))) {
        return refuse_manifest(place + " is not of the registry, or has no hash there");
    }
    if (!needs_registry_only(entry)) {
        return refuse_manifest(place + " needs a package that is not of the registry");
    }
    if (is_true(entry, "hasShrinkwrap")) {
        return refuse_manifest(place + " brings a lock of its own, which is not followed");
    }
    std::string version = text("version");
    if (version.empty() || version.size() > kNodeRangeBytesMax ||
        !consists_of(version, kRangeCharacters)) {
        return refuse_manifest(place + " has no version of the registry's");
    }
    return version;
}

/// A file inside of the package, by a name that leads nowhere else.
bool is_inner_path(std::string_view path) {
    if (path.starts_with("./")) {
        path.remove_prefix(2);
    }
    return !path.empty() && path.front() != '/' &&
           ("/" + std::string(path) + "/").find("/../") == std::string::npos &&
           consists_of(
               path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/@+");
}

void add_programs(
    const std::string& name,
    const nlohmann::json& entry,
    std::map<std::string, std::string>& programs) {
    const auto found = entry.find("bin");
    if (found == entry.end() || !found->is_object()) {
        return;
    }
    for (const auto& [program, path] : found->items()) {
        if (is_plain_name(program) && path.is_string() &&
            is_inner_path(path.get_ref<const std::string&>())) {
            programs.emplace(program, name + "/" + path.get<std::string>());
        }
    }
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

Result<NodeLock> check_node_lock(std::string_view text, const NodeDependencies& dependencies) {
    if (text.size() > kNodeLockBytesMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "the lock has more than " + std::to_string(kNodeLockBytesMax) + " bytes");
    }
    BOOST_OUTCOME_TRY(
        const nlohmann::json lock, protocol::parse_json_object(text, "package-lock.json"));
    const auto packages = lock.find("packages");
    if (packages == lock.end() || !packages->is_object()) {
        return refuse_manifest(
            "the lock has no packages",
            "Make it anew with npm 7 or later (lockfileVersion 2 or 3).");
    }
    if (packages->size() > kNodePackagesMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "it would have more than " + std::to_string(kNodePackagesMax) + " packages");
    }
    NodeLock checked;
    nlohmann::json kept = {{"", {{"dependencies", dependencies}}}};
    for (const auto& [place, entry] : packages->items()) {
        if (place.empty() || (entry.is_object() && is_true(entry, "dev"))) {
            continue;
        }
        if (!entry.is_object() || !is_place_of_package(place)) {
            return refuse_manifest("the lock has a package outside of node_modules");
        }
        BOOST_OUTCOME_TRY(std::string version, check_locked(place, entry));
        const std::string name = place.substr(kModules.size());
        if (dependencies.contains(name)) {
            add_programs(name, entry, checked.programs);
        }
        checked.versions.emplace(name, std::move(version));
        kept[place] = entry;
    }
    checked.text =
        nlohmann::json{{"lockfileVersion", 3}, {"requires", true}, {"packages", kept}}.dump(2) +
        "\n";
    return checked;
}

}  // namespace cellkeep::environments
