// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/bodies/checkpoint_body.hpp"

#include "protocol/limits.hpp"

#include <utility>

namespace cellkeep::api {

namespace {

constexpr std::size_t kChoiceBytesMax = 16;
/// Longer than every id that there is.
constexpr std::size_t kCheckpointIdBytesMax = 64;

}  // namespace

checkpoint::CheckpointOrder parse_checkpoint_order(
    const nlohmann::json& body, FieldErrors& errors) {
    checkpoint::CheckpointOrder order;
    ObjectReader reader(body, "", errors);
    order.label = reader.text("label", limits::kCheckpointLabelBytesMax);
    if (order.label && order.label->empty()) {
        reader.fail("label", "must not be empty");
    }
    const auto on_threads = reader.text("on_threads", kChoiceBytesMax);
    if (const auto known = checkpoint::to_on_threads(on_threads.value_or("carry"))) {
        order.on_threads = *known;
    } else {
        reader.fail("on_threads", "must be \"carry\", \"refuse\" or \"drop\"");
    }
    reader.finish();
    return order;
}

checkpoint::RollbackOrder parse_rollback_order(const nlohmann::json& body, FieldErrors& errors) {
    checkpoint::RollbackOrder order;
    ObjectReader reader(body, "", errors);
    if (auto id = reader.text("checkpoint", kCheckpointIdBytesMax)) {
        order.checkpoint = std::move(*id);
    } else if (!reader.has("checkpoint")) {
        reader.fail("checkpoint", "is required");
    }
    order.discard = reader.boolean("discard").value_or(false);
    order.reseed = reader.boolean("reseed").value_or(false);
    reader.finish();
    return order;
}

CheckpointChoices read_checkpoint_choices(ObjectReader& session, FieldErrors& errors) {
    using checkpoint::AutoCheckpoints;
    CheckpointChoices wanted;
    const nlohmann::json* const value = session.object("checkpoints");
    if (value == nullptr) {
        return wanted;
    }
    ObjectReader reader(*value, child_pointer(session.pointer(), "checkpoints"), errors);
    if (const auto name = reader.text("auto", kChoiceBytesMax)) {
        bool known = false;
        for (const auto one :
             {AutoCheckpoints::kOff, AutoCheckpoints::kEach, AutoCheckpoints::kCostly}) {
            if (*name == to_string(one)) {
                wanted.automatic = one;
                known = true;
            }
        }
        if (!known) {
            reader.fail("auto", "must be \"off\", \"each\" or \"costly\"");
        }
    }
    wanted.branches = reader.boolean("branches").value_or(false);
    reader.finish();
    return wanted;
}

}  // namespace cellkeep::api
