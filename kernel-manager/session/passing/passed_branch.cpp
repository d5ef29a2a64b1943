// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/passing/passed_branch.hpp"

#include "protocol/limits.hpp"

#include <utility>

namespace cellkeep::session {

using nlohmann::json;

namespace {

std::string read_bounded(const json& text, std::size_t most, const char* what) {
    auto value = text.get<std::string>();
    if (value.empty() || value.size() > most) {
        throw json::other_error::create(502, std::string("no ") + what, &text);
    }
    return value;
}

}  // namespace

std::string read_session_id(const json& id) {
    return read_bounded(id, kPassedIdBytesMax, "id of a session");
}

json write_branch(const std::optional<BranchInfo>& branch) {
    if (!branch) {
        return {};
    }
    return {
        {"parent", branch->parent},
        {"checkpoint", branch->checkpoint},
        {"label", branch->label ? json(*branch->label) : json()}};
}

std::optional<BranchInfo> read_branch(const json& text) {
    if (text.is_null()) {
        return std::nullopt;
    }
    BranchInfo branch;
    branch.parent = read_session_id(text.at("parent"));
    branch.checkpoint =
        read_bounded(text.at("checkpoint"), kPassedIdBytesMax, "id of a checkpoint");
    if (const json& label = text.at("label"); !label.is_null()) {
        branch.label = read_bounded(label, limits::kCheckpointLabelBytesMax, "label of a branch");
    }
    return branch;
}

}  // namespace cellkeep::session
