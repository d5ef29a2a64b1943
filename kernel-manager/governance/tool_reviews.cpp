// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/governance/tool_reviews.hpp"

#include "protocol/json.hpp"
#include "protocol/support/syscall.hpp"

#include <cerrno>
#include <utility>

namespace cellkeep::governance {

namespace {

using nlohmann::json;

constexpr std::size_t kReviewsBytesMax = 16ULL << 20U;
constexpr mode_t kReviewsMode = 0600;

bool is_text_map(const json& value) {
    if (!value.is_object()) {
        return false;
    }
    for (const json& one : value) {
        if (!one.is_string()) {
            return false;
        }
    }
    return true;
}

}  // namespace

std::string_view to_string(ToolReviews::State state) {
    switch (state) {
        case ToolReviews::State::kReviewed:
            return "reviewed";
        case ToolReviews::State::kNew:
            return "new";
        case ToolReviews::State::kChanged:
            return "changed";
    }
    return "changed";
}

Result<ToolReviews> ToolReviews::load(const std::string& path) {
    const auto text = read_file(path, kReviewsBytesMax);
    if (text.has_error() && text.error().errno_value() == ENOENT) {
        return ToolReviews();
    }
    if (text.has_error()) {
        return text.error();
    }
    BOOST_OUTCOME_TRY(const json document, protocol::parse_json_object(text.value(), path));
    ToolReviews reviews;
    for (const auto& [name, entry] : document.items()) {
        const bool whole = entry.is_object() && entry.contains("identity") &&
                           entry["identity"].is_string() && entry.contains("tools") &&
                           is_text_map(entry["tools"]);
        if (!whole) {
            return Error(
                ErrorCode::kInvalidArgument,
                path + ": the reviewed tools cannot be read",
                "Remove the file: then the tools that the servers have now count as reviewed.");
        }
        reviews.servers_[name] = {entry["identity"], entry["tools"].get<Digests>()};
    }
    return reviews;
}

Status ToolReviews::save(const std::string& path) const {
    json document = json::object();
    std::map<std::string, Server> servers = servers_;
    if (auto kept = load(path); kept.has_value()) {
        servers.merge(kept.value().servers_);
    }
    for (const auto& [name, server] : servers) {
        document[name] = {{"identity", server.identity}, {"tools", server.tools}};
    }
    return write_file_atomically(path, protocol::dump_json(document) + "\n", kReviewsMode);
}

bool ToolReviews::take_first(
    const std::string& server, const std::string& identity, const Digests& tools) {
    const auto known = servers_.find(server);
    if (known != servers_.end() && known->second.identity == identity) {
        return false;
    }
    servers_[server] = {identity, tools};
    return true;
}

void ToolReviews::review(
    const std::string& server, const std::string& tool, const std::string& digest) {
    servers_[server].tools[tool] = digest;
}

ToolReviews::State ToolReviews::state(
    const std::string& server, const std::string& tool, std::string_view digest) const {
    const auto known = servers_.find(server);
    if (known == servers_.end()) {
        return State::kNew;
    }
    const auto found = known->second.tools.find(tool);
    if (found == known->second.tools.end()) {
        return State::kNew;
    }
    return found->second == digest ? State::kReviewed : State::kChanged;
}

}  // namespace cellkeep::governance
