// SPDX-License-Identifier: Apache-2.0
#include "sandbox/cgroup/freezer.hpp"

#include "protocol/support/syscall.hpp"
#include "sandbox/cgroup/cgroup_v2.hpp"

namespace cellkeep::sandbox {

namespace {

Error no_freezer(const char* what) {
    return {
        ErrorCode::kUnavailable,
        std::string(what) + ": the host gives the server no cgroup to do it with"};
}

}  // namespace

bool Freezer::works() const {
    return !directory_.empty() &&
           (version_ == CgroupVersion::kV1 || has_control_file(directory_ + "/cgroup.freeze"));
}

Status Freezer::freeze(std::chrono::milliseconds patience) {
    if (directory_.empty()) {
        return no_freezer("freeze");
    }
    if (version_ == CgroupVersion::kV1) {
        return write_control_file(directory_ + "/freezer.state", "FROZEN");
    }
    BOOST_OUTCOME_TRY(write_control_file(directory_ + "/cgroup.freeze", "1"));
    return wait_for_cgroup_event(directory_, "frozen 1", patience);
}

Status Freezer::thaw() {
    if (directory_.empty()) {
        return no_freezer("thaw");
    }
    return version_ == CgroupVersion::kV1
               ? write_control_file(directory_ + "/freezer.state", "THAWED")
               : write_control_file(directory_ + "/cgroup.freeze", "0");
}

}  // namespace cellkeep::sandbox
