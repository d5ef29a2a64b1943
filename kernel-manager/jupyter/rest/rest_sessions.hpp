// SPDX-License-Identifier: Apache-2.0
//
// Which documents use which kernels: the sessions of Jupyter clients. A table in memory, bounded by
// limits::kJupyterSessionsMax; it knows nothing of whether a kernel still lives.
#pragma once

#include "kernel-manager/jupyter/rest/rest_model.hpp"
#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace cellkeep::jupyter {

class RestSessionTable {
 public:
    /// Null if there is none. Valid until the next add or remove.
    RestSession* find(const std::string& id);
    /// The owner's session of this document.
    RestSession* find_path(const std::string& path, const std::string& owner);
    /// Oldest first.
    const std::vector<RestSession>& all() const { return sessions_; }

    /// For another program in the server's process, and from one.
    nlohmann::json pass_on() const;
    /// Throws nlohmann::json::exception for what is not of that form.
    void go_on(const nlohmann::json& passed);

    /// There must be room: fewer than limits::kJupyterSessionsMax.
    void add(RestSession session);
    void remove(const std::string& id);
    void remove_if(const std::function<bool(const RestSession&)>& condition);

 private:
    std::vector<RestSession> sessions_;
};

}  // namespace cellkeep::jupyter
