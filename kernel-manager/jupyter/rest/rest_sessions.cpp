// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/rest/rest_sessions.hpp"

#include "protocol/limits.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::jupyter {

RestSession* RestSessionTable::find(const std::string& id) {
    const auto found = std::find_if(
        sessions_.begin(), sessions_.end(), [&id](const auto& each) { return each.id == id; });
    return found == sessions_.end() ? nullptr : &*found;
}

RestSession* RestSessionTable::find_path(const std::string& path, const std::string& owner) {
    const auto found = std::find_if(sessions_.begin(), sessions_.end(), [&](const auto& each) {
        return each.path == path && each.owner == owner;
    });
    return found == sessions_.end() ? nullptr : &*found;
}

nlohmann::json RestSessionTable::pass_on() const {
    nlohmann::json all = nlohmann::json::array();
    for (const RestSession& each : sessions_) {
        all.push_back(
            {{"id", each.id},
             {"path", each.path},
             {"name", each.name},
             {"type", each.type},
             {"kernel_id", each.kernel_id},
             {"owner", each.owner}});
    }
    return all;
}

void RestSessionTable::go_on(const nlohmann::json& passed) {
    for (const nlohmann::json& each : passed) {
        if (sessions_.size() < limits::kJupyterSessionsMax) {
            sessions_.push_back(
                {each.at("id").get<std::string>(),
                 each.at("path").get<std::string>(),
                 each.at("name").get<std::string>(),
                 each.at("type").get<std::string>(),
                 each.at("kernel_id").get<std::string>(),
                 each.at("owner").get<std::string>()});
        }
    }
}

void RestSessionTable::add(RestSession session) {
    CELLKEEP_CHECK(sessions_.size() < limits::kJupyterSessionsMax);
    sessions_.push_back(std::move(session));
}

void RestSessionTable::remove(const std::string& id) {
    remove_if([&id](const RestSession& each) { return each.id == id; });
}

void RestSessionTable::remove_if(const std::function<bool(const RestSession&)>& condition) {
    std::erase_if(sessions_, condition);
}

}  // namespace cellkeep::jupyter
