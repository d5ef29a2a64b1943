// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/rest/contents/contents_checkpoints.hpp"

#include "kernel-manager/http/message/problem.hpp"
#include "kernel-manager/jupyter/rest/contents/contents_changes.hpp"
#include "kernel-manager/jupyter/rest/contents/contents_failures.hpp"
#include "kernel-manager/jupyter/rest/contents/contents_model.hpp"

#include <utility>

namespace cellkeep::jupyter {

namespace {

constexpr std::string_view kWord = "checkpoints";

Error no_such_checkpoint(const ContentsPlace& place, const std::string& id) {
    return {ErrorCode::kNotFound, "Checkpoint does not exist: " + place.api_path() + "@" + id};
}

Result<sandbox::Entry> find_checkpoint(const ContentsPlace& place) {
    BOOST_OUTCOME_TRY(const auto workspace, workspace_of(place));
    auto entry = workspace.stat(checkpoint_path(place.path));
    if (entry.has_error() || entry.value().kind != sandbox::EntryKind::kFile) {
        return no_such_checkpoint(place, std::string(kCheckpointId));
    }
    return entry;
}

http::Response list_checkpoints(const ContentsPlace& place) {
    nlohmann::json list = nlohmann::json::array();
    if (const auto entry = find_checkpoint(place); entry.has_value()) {
        list.push_back(checkpoint_model(entry.value()));
    }
    return http::make_json(200, list);
}

boost::asio::awaitable<http::Response> make_checkpoint(ContentsPlace place) {
    const ContentsPlace checkpoint = place.at(checkpoint_path(place.path));
    const Status copied = co_await copy_contents(place, checkpoint);
    if (copied.has_error()) {
        co_return contents_failure(copied.error());
    }
    const auto entry = find_checkpoint(place);
    if (entry.has_error()) {
        co_return contents_failure(entry.error());
    }
    http::Response response = http::make_json(201, checkpoint_model(entry.value()));
    response.headers.add(
        "Location",
        contents_location(place.api_path()) + "/checkpoints/" + std::string(kCheckpointId));
    co_return response;
}

boost::asio::awaitable<http::Response> restore_checkpoint(ContentsPlace place) {
    const ContentsPlace checkpoint = place.at(checkpoint_path(place.path));
    const Status copied = co_await copy_contents(checkpoint, place);
    if (copied.has_error()) {
        co_return contents_failure(copied.error());
    }
    co_return http::make_empty(204);
}

http::Response remove_checkpoint(const ContentsPlace& place) {
    const auto workspace = workspace_of(place);
    if (workspace.has_error()) {
        return contents_failure(workspace.error());
    }
    const Status gone = workspace.value().remove(checkpoint_path(place.path));
    return gone.has_error() ? contents_failure(gone.error()) : http::make_empty(204);
}

}  // namespace

std::optional<CheckpointAddress> find_checkpoint_address(const std::string& path) {
    CheckpointAddress address;
    address.path = path;
    if (name_of(path) != kWord) {
        const std::size_t slash = path.rfind('/');
        if (slash == std::string::npos || name_of(path.substr(0, slash)) != kWord) {
            return std::nullopt;
        }
        address.id = path.substr(slash + 1);
        address.path = path.substr(0, slash);
    }
    if (address.path.size() <= kWord.size()) {
        return std::nullopt;  // nothing stands in front
    }
    address.path.resize(address.path.size() - kWord.size() - 1);
    return address;
}

boost::asio::awaitable<http::Response> serve_checkpoints(
    std::string method, ContentsPlace place, std::string id) {
    const bool by_id = !id.empty();
    if (method == "GET" && !by_id) {
        co_return list_checkpoints(place);
    }
    if (method == "POST" && !by_id) {
        http::Response made = co_await make_checkpoint(std::move(place));
        co_return made;
    }
    if (!by_id || (method != "POST" && method != "DELETE")) {
        co_return http::to_response(
            http::make_problem(405, "GET and POST of checkpoints, POST and DELETE of one."));
    }
    if (id != kCheckpointId || find_checkpoint(place).has_error()) {
        co_return contents_failure(no_such_checkpoint(place, id));
    }
    if (method == "DELETE") {
        co_return remove_checkpoint(place);
    }
    http::Response restored = co_await restore_checkpoint(std::move(place));
    co_return restored;
}

}  // namespace cellkeep::jupyter
