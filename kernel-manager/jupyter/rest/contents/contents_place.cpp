// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/rest/contents/contents_place.hpp"

namespace cellkeep::jupyter {

namespace {

std::string_view without_slashes(std::string_view text) {
    while (text.starts_with('/')) {
        text.remove_prefix(1);
    }
    while (text.ends_with('/')) {
        text.remove_suffix(1);
    }
    return text;
}

std::string_view first_component(std::string_view text) {
    return text.substr(0, text.find('/'));
}

bool is_hidden(std::string_view path) {
    return path.starts_with('.') || path.find("/.") != std::string_view::npos;
}

Error no_such_place(std::string_view text) {
    return {ErrorCode::kNotFound, "No such file or directory: " + std::string(text)};
}

}  // namespace

std::shared_ptr<session::Session> ContentsPlaces::session_of(
    std::string_view text, const http::Principal& principal) const {
    const std::string_view name = first_component(without_slashes(text));
    auto found = name.empty() ? nullptr : backend_.find(std::string(name));
    const bool seen = found != nullptr && http::may_see(principal, found->info().owner);
    return seen ? std::move(found) : nullptr;
}

Result<ContentsPlace> ContentsPlaces::find(
    std::string_view text, const http::Principal& principal) const {
    const std::string_view plain = without_slashes(text);
    if (plain.empty()) {
        return ContentsPlace();
    }
    const std::string_view name = first_component(plain);
    std::string_view rest = plain.substr(name.size());
    rest.remove_prefix(rest.empty() ? 0 : 1);
    BOOST_OUTCOME_TRY(auto path, sandbox::parse_workspace_path(rest));
    auto session = session_of(plain, principal);
    if (session == nullptr || is_hidden(path)) {
        return no_such_place(plain);
    }
    return ContentsPlace(std::string(name), std::move(session), std::move(path));
}

Result<sandbox::Workspace> workspace_of(const ContentsPlace& place) {
    auto workspace = place.session->workspace();
    if (workspace.has_error()) {
        return Error(ErrorCode::kNotFound, workspace.error().message());
    }
    return workspace;
}

Status check_no_input(const ContentsPlace& place) {
    for (const auto& [mounted, name] : place.session->inputs()) {
        if (mounted == place.path || mounted.starts_with(place.path + "/")) {
            return Error(
                ErrorCode::kConflict,
                mounted + " is the operator's read-only " + name +
                    " for as long as the session lives; use another path.");
        }
    }
    return ok();
}

Result<sandbox::Workspace::OpenedFile> open_contents(
    const ContentsPlace& place, const sandbox::Workspace& workspace) {
    return place.session->inputs().contains(place.path) ? place.session->open_input(place.path)
                                                        : workspace.open_for_reading(place.path);
}

}  // namespace cellkeep::jupyter
