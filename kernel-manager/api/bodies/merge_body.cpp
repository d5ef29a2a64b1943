// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/bodies/merge_body.hpp"

#include "sandbox/workspace/workspace.hpp"

#include <charconv>
#include <cstddef>
#include <string_view>
#include <utility>

namespace cellkeep::api {

namespace {

/// Longer than every id that there is.
constexpr std::size_t kBranchIdBytesMax = 64;
constexpr std::string_view kHexDigits = "0123456789abcdef";

void read_paths(ObjectReader& reader, std::vector<std::string>& paths, FieldErrors& errors) {
    const nlohmann::json* const list = reader.array("paths");
    if (list == nullptr) {
        return;
    }
    if (list->empty() || list->size() > checkpoint::kMergePathsMax) {
        reader.fail("paths", "must be 1 to " + std::to_string(checkpoint::kMergePathsMax));
        return;
    }
    const std::string base = child_pointer(reader.pointer(), "paths");
    for (std::size_t i = 0; i < list->size(); ++i) {
        const auto* const text = (*list)[i].get_ptr<const std::string*>();
        if (text == nullptr) {
            errors.push_back({child_pointer(base, std::to_string(i)), "must be a string"});
            continue;
        }
        auto path = sandbox::parse_workspace_path(*text);
        if (path.has_error() || path.value().empty()) {
            errors.push_back(
                {child_pointer(base, std::to_string(i)),
                 path.has_error() ? path.error().message() : "must name a file or a directory"});
            continue;
        }
        paths.push_back(std::move(path).value());
    }
}

std::optional<std::string> parse_path_cursor(std::string_view text) {
    if (text.empty() || text.size() % 2 != 0) {
        return std::nullopt;
    }
    std::string path;
    for (std::size_t at = 0; at < text.size(); at += 2) {
        const std::size_t high = kHexDigits.find(text[at]);
        const std::size_t low = kHexDigits.find(text[at + 1]);
        if (high == std::string_view::npos || low == std::string_view::npos) {
            return std::nullopt;
        }
        path += static_cast<char>(high * 16 + low);
    }
    return path;
}

/// Digits only.
std::optional<std::size_t> parse_page_limit(const std::string& text) {
    std::size_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, failed] = std::from_chars(text.data(), end, value);
    if (failed != std::errc() || stop != end || value < 1 || value > checkpoint::kFileChangesMax) {
        return std::nullopt;
    }
    return value;
}

}  // namespace

MergeRequest parse_merge(const nlohmann::json& body, FieldErrors& errors) {
    MergeRequest request;
    ObjectReader reader(body, "", errors);
    if (auto from = reader.text("from", kBranchIdBytesMax)) {
        request.from = std::move(*from);
    } else if (body.is_object() && !reader.has("from")) {
        reader.fail("from", "is required");
    }
    read_paths(reader, request.order.paths, errors);
    request.order.force = reader.boolean("force").value_or(false);
    reader.finish();
    return request;
}

std::optional<http::Problem> parse_comparison(const http::Target& target, ComparisonQuery& query) {
    const auto against = target.find_query("against");
    query.later = target.find_query("checkpoint");
    if (!against || against->empty() || (query.later && query.later->empty())) {
        return http::make_problem(
            400,
            "against must be the id of a checkpoint or a session, and checkpoint that of a "
            "checkpoint.");
    }
    query.against = *against;
    if (const auto limit = target.find_query("limit")) {
        const auto number = parse_page_limit(*limit);
        if (!number) {
            return http::make_problem(
                400,
                "limit must be a number from 1 to " + std::to_string(checkpoint::kFileChangesMax) +
                    ".");
        }
        query.page.limit = *number;
    }
    if (const auto after = target.find_query("after")) {
        auto path = parse_path_cursor(*after);
        if (!path) {
            return http::make_problem(
                400,
                "unknown-cursor",
                "The page cannot be found",
                "\"after\" is not what a page before this one gave as \"next\"; ask from the "
                "start.");
        }
        query.page.after = std::move(*path);
    }
    return std::nullopt;
}

std::string make_path_cursor(const std::string& path) {
    std::string cursor;
    for (const char byte : path) {
        const auto value = static_cast<unsigned char>(byte);
        cursor += kHexDigits[value / 16U];
        cursor += kHexDigits[value % 16U];
    }
    return cursor;
}

}  // namespace cellkeep::api
