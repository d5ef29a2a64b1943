// SPDX-License-Identifier: Apache-2.0
//
// Kernels and sessions as Jupyter clients read them. A Jupyter session is a client's document and
// the kernel it uses; the kernel itself is a session of the session service. Pure functions.
#pragma once

#include "kernel-manager/session/session_info.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace cellkeep::jupyter {

struct RestSession {
    std::string id;    // UUID
    std::string path;  // often of a notebook, but any text that names the document
    std::string name;
    std::string type;  // "notebook", "console", "file" …
    std::string kernel_id;
    std::string owner;  // principal
};

/// {"id", "name", "last_activity", "execution_state", "connections"}; a dead kernel has a "reason"
/// too. Clients parse the time with "%Y-%m-%dT%H:%M:%S.%fZ".
nlohmann::json kernel_model(const session::SessionInfo& info);
/// With the members "notebook" and "kernel".
nlohmann::json session_model(const RestSession& session, const session::SessionInfo& kernel);

}  // namespace cellkeep::jupyter
