// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/session_tools.hpp"

namespace cellkeep::session {

std::shared_ptr<ToolResultFiles> SessionTools::files() {
    if (!files_) {
        files_ = std::make_shared<ToolResultFiles>(workspace_);
    }
    return files_;
}

OperatorAccess SessionTools::access(const std::string& execution_id) {
    return {
        setup_.operator_tools,
        {setup_.id, execution_id, setup_.options.owner},
        [this, alive = std::weak_ptr(alive_)] { return alive.expired() ? nullptr : files(); }};
}

}  // namespace cellkeep::session
