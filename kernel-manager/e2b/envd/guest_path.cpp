// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/envd/guest_path.hpp"

#include "sandbox/workspace/workspace.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace cellkeep::e2b {

namespace {

constexpr std::string_view kWorkspace = "/workspace";

std::optional<std::string> beneath(std::string_view root, std::string_view path) {
    if (path == root) {
        return std::string();
    }
    if (path.starts_with(root) && path[root.size()] == '/') {
        return std::string(path.substr(root.size() + 1));
    }
    return std::nullopt;
}

}  // namespace

std::string absolute_path(std::string_view path) {
    std::string whole(path);
    if (path.empty() || path.front() != '/') {
        const bool of_home = path == "~" || path.starts_with("~/");
        whole = std::string(kHome) + "/" + std::string(path.substr(of_home ? 1 : 0));
    }
    std::vector<std::string_view> parts;
    std::string_view rest = whole;
    while (!rest.empty()) {
        const std::size_t slash = std::min(rest.find('/'), rest.size());
        const std::string_view part = rest.substr(0, slash);
        rest.remove_prefix(std::min(slash + 1, rest.size()));
        if (part == "..") {
            if (!parts.empty()) {
                parts.pop_back();
            }
        } else if (!part.empty() && part != ".") {
            parts.push_back(part);
        }
    }
    std::string absolute;
    for (const std::string_view part : parts) {
        absolute += '/';
        absolute += part;
    }
    return absolute.empty() ? "/" : absolute;
}

Result<GuestPath> parse_guest_path(std::string_view path) {
    GuestPath place;
    place.shown = absolute_path(path);
    auto inside = beneath(kHome, place.shown);
    if (!inside) {
        inside = beneath(kWorkspace, place.shown);
    }
    if (!inside) {
        return Error(
            ErrorCode::kPermissionDenied,
            place.shown + ": this is offered beneath /home/user alone, which is also /workspace.");
    }
    BOOST_OUTCOME_TRY(place.inside, sandbox::parse_workspace_path(*inside));
    return place;
}

std::optional<std::string> path_elsewhere(std::string_view path) {
    std::string absolute = absolute_path(path);
    const bool here = beneath(kHome, absolute) || beneath(kWorkspace, absolute);
    if (here || absolute.find('\0') != std::string::npos) {
        return std::nullopt;
    }
    return absolute;
}

std::string join_path(const std::string& directory, std::string_view name) {
    return directory + (directory.ends_with('/') ? "" : "/") + std::string(name);
}

}  // namespace cellkeep::e2b
