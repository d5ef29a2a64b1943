// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/activity.hpp"

#include <array>

namespace cellkeep::session {

bool is_tracked(std::string_view request_type) {
    // jupyter_server, services/kernels/kernelmanager.py: requests that a client sends by itself. A
    // reply's type never is a parent's, so the requests are enough. The last four are control
    // requests too; Jupyter Server means all of control to be untracked.
    constexpr std::array<std::string_view, 10> kUntracked = {
        "comm_info_request",
        "kernel_info_request",
        "shutdown_request",
        "interrupt_request",
        "debug_request",
        "input_reply",
        "usage_request",
        "create_subshell_request",
        "delete_subshell_request",
        "list_subshell_request"};
    return std::find(kUntracked.begin(), kUntracked.end(), request_type) == kUntracked.end();
}

void Activity::note_request(std::string_view type, Time now) {
    if (is_tracked(type)) {
        touch(now);
    }
}

void Activity::note_output(std::string_view parent_type, bool running, Time now) {
    // Without a parent it is the server's or the kernel's own news (starting, restarting).
    if (running || (!parent_type.empty() && is_tracked(parent_type))) {
        touch(now);
    }
}

}  // namespace cellkeep::session
