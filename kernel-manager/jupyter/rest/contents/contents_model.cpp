// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/rest/contents/contents_model.hpp"

#include "kernel-manager/execution/artifacts/media_type.hpp"
#include "kernel-manager/http/message/target.hpp"
#include "protocol/support/time.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace cellkeep::jupyter {

namespace {

nlohmann::json make_model(std::string_view name, std::string path, const char* type) {
    return {
        {"name", std::string(name)},
        {"path", std::move(path)},
        {"type", type},
        {"writable", true},
        {"created", nullptr},
        {"last_modified", nullptr},
        {"mimetype", nullptr},
        {"content", nullptr},
        {"format", nullptr},
        {"size", nullptr},
        {"hash", nullptr},
        {"hash_algorithm", nullptr}};
}

}  // namespace

bool is_notebook_name(std::string_view name) {
    return name.ends_with(".ipynb");
}

std::string_view name_of(std::string_view path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string join_path(const std::string& directory, std::string_view name) {
    return directory.empty() ? std::string(name) : directory + "/" + std::string(name);
}

nlohmann::json entry_model(const ContentsPlace& place, const sandbox::Entry& entry) {
    const bool is_directory = entry.kind == sandbox::EntryKind::kDirectory;
    const bool is_notebook = !is_directory && is_notebook_name(entry.path);
    const ContentsPlace at = place.at(entry.path);
    const std::string path = at.api_path();
    nlohmann::json model = make_model(
        name_of(path), path, is_directory ? "directory" : (is_notebook ? "notebook" : "file"));
    model["created"] = model["last_modified"] = to_iso8601(entry.modified);
    if (!is_directory) {
        model["size"] = entry.bytes;
        model["writable"] = !place.session->inputs().contains(entry.path);
    }
    if (!is_directory && !is_notebook) {
        model["mimetype"] = std::string(session::media_type_of(entry.path));
    }
    return model;
}

nlohmann::json session_directory_model(std::string_view name, const session::SessionInfo& info) {
    nlohmann::json model = make_model(name, std::string(name), "directory");
    model["created"] = to_iso8601(info.created_at);
    model["last_modified"] = to_iso8601(info.last_activity);
    return model;
}

nlohmann::json root_model() {
    nlohmann::json model = make_model("", "", "directory");
    // It is made for each answer.
    model["created"] = model["last_modified"] = to_iso8601(std::chrono::system_clock::now());
    return model;
}

std::string contents_location(std::string_view api_path) {
    std::string location = "/api/contents";
    while (!api_path.empty()) {
        const std::string_view segment = api_path.substr(0, api_path.find('/'));
        location += "/" + http::encode_segment(segment);
        api_path.remove_prefix(std::min(api_path.size(), segment.size() + 1));
    }
    return location;
}

nlohmann::json checkpoint_model(const sandbox::Entry& entry) {
    return {{"id", std::string(kCheckpointId)}, {"last_modified", to_iso8601(entry.modified)}};
}

std::string checkpoint_path(const std::string& path) {
    const std::string_view name = name_of(path);
    const std::size_t dot = name.rfind('.');
    const bool has_suffix = dot != std::string_view::npos && dot > 0;
    const std::string_view stem = has_suffix ? name.substr(0, dot) : name;
    const std::string_view suffix = has_suffix ? name.substr(dot) : std::string_view();
    return path.substr(0, path.size() - name.size()) + std::string(kCheckpointDirectory) + "/" +
           std::string(stem) + "-" + std::string(kCheckpointId) + std::string(suffix);
}

}  // namespace cellkeep::jupyter
