// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/bodies/branch_body.hpp"

#include "protocol/limits.hpp"

#include <utility>

namespace cellkeep::api {

namespace {

constexpr std::size_t kThreadsBytesMax = 16;
/// Longer than every id that there is.
constexpr std::size_t kFromBytesMax = 64;

std::vector<std::string> read_labels(ObjectReader& reader, std::size_t count, FieldErrors& errors) {
    std::vector<std::string> labels;
    const nlohmann::json* const list = reader.array("labels");
    if (list == nullptr) {
        return labels;
    }
    if (list->size() > count) {
        reader.fail("labels", "must not be more than there are branches");
        return labels;
    }
    for (std::size_t i = 0; i < list->size(); ++i) {
        const auto* const label = (*list)[i].get_ptr<const std::string*>();
        if (label == nullptr || label->empty() ||
            label->size() > limits::kCheckpointLabelBytesMax) {
            errors.push_back(
                {child_pointer(child_pointer(reader.pointer(), "labels"), std::to_string(i)),
                 "must be a text of 1 to " + std::to_string(limits::kCheckpointLabelBytesMax) +
                     " bytes"});
        } else {
            labels.push_back(*label);
        }
    }
    return labels;
}

/// Whether they are spoken of.
bool read_threads(ObjectReader& reader, checkpoint::OnThreads& on_threads) {
    const auto threads = reader.text("on_threads", kThreadsBytesMax);
    if (const auto known = checkpoint::to_on_threads(threads.value_or("carry"))) {
        on_threads = *known;
    } else {
        reader.fail("on_threads", "must be \"carry\", \"refuse\" or \"drop\"");
    }
    return threads.has_value();
}

}  // namespace

std::optional<StateOrder> read_state(ObjectReader& parent, FieldErrors& errors) {
    const nlohmann::json* const value = parent.object("from");
    if (value == nullptr) {
        return std::nullopt;
    }
    StateOrder state;
    ObjectReader reader(*value, child_pointer(parent.pointer(), "from"), errors);
    if (auto session = reader.text("session", kFromBytesMax)) {
        state.session = std::move(*session);
    } else if (!reader.has("session")) {
        reader.fail("session", "is required");
    }
    state.checkpoint = reader.text("checkpoint", kFromBytesMax);
    if (read_threads(reader, state.on_threads) && state.checkpoint) {
        reader.fail("on_threads", "belongs to the state of now, without \"checkpoint\"");
    }
    state.reseed = reader.boolean("reseed").value_or(true);
    reader.finish();
    return state;
}

void read_start(
    ObjectReader& reader, std::optional<std::string>& from, checkpoint::OnThreads& on_threads) {
    from = reader.text("from", kFromBytesMax);
    if (read_threads(reader, on_threads) && from) {
        reader.fail("on_threads", "belongs to a branch from now, without \"from\"");
    }
}

BranchesOrder parse_branches_order(const nlohmann::json& body, FieldErrors& errors) {
    BranchesOrder order;
    ObjectReader reader(body, "", errors);
    read_start(reader, order.from, order.on_threads);
    order.count = reader.integer("count", {1, kBranchesAtOnceMax}).value_or(1);
    order.labels = read_labels(reader, order.count, errors);
    order.reseed = reader.boolean("reseed").value_or(true);
    reader.finish();
    return order;
}

}  // namespace cellkeep::api
