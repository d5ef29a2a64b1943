// SPDX-License-Identifier: Apache-2.0
//
// The way of a session's code to the operator's tools, and the files that keep their long results.
// io_context thread only.
#pragma once

#include "kernel-manager/execution/operator_tools.hpp"
#include "kernel-manager/execution/tool_result_files.hpp"
#include "kernel-manager/session/session_setup.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <memory>
#include <string>

namespace cellkeep::session {

class SessionTools {
 public:
    /// Both must outlive this.
    SessionTools(const SessionSetup& setup, const sandbox::Workspace& workspace)
        : setup_(setup), workspace_(workspace) {}
    SessionTools(const SessionTools&) = delete;
    SessionTools& operator=(const SessionTools&) = delete;
    ~SessionTools() = default;

    /// Of an execution; "": of a Jupyter client's requests. What comes of it may outlive this.
    OperatorAccess access(const std::string& execution_id);

 private:
    std::shared_ptr<ToolResultFiles> files();

    const SessionSetup& setup_;
    const sandbox::Workspace& workspace_;
    std::shared_ptr<ToolResultFiles> files_;  // null until a result is too long
    std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace cellkeep::session
