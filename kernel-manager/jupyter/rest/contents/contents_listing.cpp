// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/rest/contents/contents_listing.hpp"

#include "kernel-manager/jupyter/rest/contents/contents_changes.hpp"
#include "kernel-manager/jupyter/rest/contents/contents_failures.hpp"
#include "kernel-manager/jupyter/rest/contents/contents_model.hpp"
#include "kernel-manager/jupyter/rest/contents/contents_turns.hpp"
#include "protocol/json.hpp"
#include "sandbox/workspace/workspace_listing.hpp"

#include <cstddef>
#include <optional>
#include <utility>

namespace cellkeep::jupyter {

namespace {

/// Nothing of what a directory does not show.
std::optional<nlohmann::json> shown_entry(const ContentsPlace& place, const sandbox::Entry& entry) {
    if (name_of(entry.path).starts_with('.')) {
        return std::nullopt;
    }
    if (place.session->inputs().contains(entry.path)) {
        auto described = describe_contents(place.at(entry.path));
        return described.has_value() ? std::optional(std::move(described).value()) : std::nullopt;
    }
    return entry.kind == sandbox::EntryKind::kOther ? std::nullopt
                                                    : std::optional(entry_model(place, entry));
}

}  // namespace

boost::asio::awaitable<Result<std::vector<sandbox::Entry>>> list_in_slices(
    sandbox::Workspace workspace, std::string path) {
    auto opened = sandbox::DirectoryListing::open(workspace, path);
    if (opened.has_error()) {
        co_return std::move(opened).error();
    }
    // From here on the workspace may be gone: the listing has what it needs.
    sandbox::DirectoryListing listing = std::move(opened).value();
    while (true) {
        const auto more = listing.read_some(kContentsSliceEntries);
        if (more.has_error()) {
            co_return more.error();
        }
        if (!more.value()) {
            co_return listing.take();
        }
        co_await next_turn();
    }
}

boost::asio::awaitable<http::Response> list_directory(ContentsPlace place, nlohmann::json model) {
    const auto workspace = workspace_of(place);
    if (workspace.has_error()) {
        co_return contents_failure(workspace.error());
    }
    const auto entries = co_await list_in_slices(workspace.value(), place.path);
    if (entries.has_error()) {
        co_return contents_failure(entries.error());
    }
    // As text: it needs no document of all entries.
    std::string list = "[";
    std::size_t described = 0;
    for (const sandbox::Entry& entry : entries.value()) {
        if (++described % kContentsSliceEntries == 0) {
            co_await next_turn();
        }
        if (const auto shown = shown_entry(place, entry)) {
            list += (list.size() == 1 ? "" : ",") + protocol::dump_json(*shown);
        }
    }
    model["format"] = "json";
    model.erase("content");
    std::string text = protocol::dump_json(model);
    text.pop_back();  // the brace
    http::Response response = http::make_json(200, nlohmann::json::object());
    response.body = std::move(text) + ",\"content\":" + std::move(list) + "]}";
    co_return response;
}

}  // namespace cellkeep::jupyter
