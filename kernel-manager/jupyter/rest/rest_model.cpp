// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/rest/rest_model.hpp"

#include "kernel-manager/environments/name.hpp"
#include "kernel-manager/jupyter/rest/rest_kernelspecs.hpp"
#include "kernel-manager/kernel/kernel_state.hpp"
#include "protocol/support/time.hpp"

namespace cellkeep::jupyter {

nlohmann::json kernel_model(const session::SessionInfo& info) {
    nlohmann::json model = {
        {"id", info.kernel_id},
        {"name", kernel_name_of(environments::offered_name(info.language, info.environment.name))},
        {"last_activity", to_iso8601(info.last_activity)},
        {"execution_state", to_string(info.state)},
        {"connections", info.connections}};
    if (info.state == session::KernelState::kDead && info.death) {
        model["reason"] = describe(*info.death);
    }
    return model;
}

nlohmann::json session_model(const RestSession& session, const session::SessionInfo& kernel) {
    nlohmann::json model = {
        {"id", session.id},
        {"path", session.path},
        {"name", session.name},
        {"type", session.type},
        {"kernel", kernel_model(kernel)}};
    if (session.type == "notebook") {
        // As Jupyter Server still does for clients of the first version of this interface.
        model["notebook"] = {{"path", session.path}, {"name", session.name}};
    }
    return model;
}

}  // namespace cellkeep::jupyter
