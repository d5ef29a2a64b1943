// SPDX-License-Identifier: Apache-2.0
//
// When a session was last used, as Jupyter Server counts it: somebody's work and its output are
// activity, looking at a session (attaching, kernel_info, comm_info, polling its usage) is not.
// Values only; the clock is the caller's. Not thread-safe.
#pragma once

#include <algorithm>
#include <chrono>
#include <string_view>

namespace cellkeep::session {

/// Whether a request of this type, and what follows from it, is activity. Jupyter Server's
/// untracked_message_types, and the control requests that it does not know.
bool is_tracked(std::string_view request_type);

class Activity {
 public:
    using Time = std::chrono::steady_clock::time_point;

    explicit Activity(Time now) : last_(now) {}

    /// Work that is activity by itself: an execution, a file that was written.
    void touch(Time now) { last_ = std::max(last_, now); }
    /// A client's message has arrived.
    void note_request(std::string_view type, Time now);
    /// The kernel has said something on iopub. parent_type: of the request it follows from, empty
    /// if from none; running: a tracked request is with the kernel.
    void note_output(std::string_view parent_type, bool running, Time now);

    Time last() const { return last_; }

 private:
    Time last_;
};

}  // namespace cellkeep::session
