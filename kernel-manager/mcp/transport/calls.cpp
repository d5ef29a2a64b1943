// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/transport/calls.hpp"

#include "protocol/json.hpp"

#include <vector>

namespace cellkeep::mcp {

bool CallsInFlight::add(const nlohmann::json& id, const std::shared_ptr<Call>& call) {
    return calls_.emplace(protocol::dump_json(id), call).second;
}

void CallsInFlight::remove(const nlohmann::json& id) {
    calls_.erase(protocol::dump_json(id));
}

void CallsInFlight::cancel(const Message& notification) const {
    const auto id = notification.params.find("requestId");
    if (id == notification.params.end() || !is_token(*id)) {
        return;
    }
    const auto call = calls_.find(protocol::dump_json(*id));
    if (call != calls_.end()) {
        if (const auto alive = call->second.lock()) {
            alive->cancel();
        }
    }
}

void CallsInFlight::cancel_if(const std::function<bool(const Call&)>& chosen) const {
    std::vector<std::shared_ptr<Call>> alive;  // what is cancelled may remove itself
    for (const auto& [id, call] : calls_) {
        alive.push_back(call.lock());
    }
    for (const auto& call : alive) {
        if (call != nullptr && chosen(*call)) {
            call->cancel();
        }
    }
}

}  // namespace cellkeep::mcp
