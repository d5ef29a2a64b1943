// SPDX-License-Identifier: Apache-2.0
#include "sandbox/cgroup/process_limit.hpp"

#include "protocol/support/syscall.hpp"
#include "sandbox/cgroup/control_file.hpp"

#include <utility>

namespace cellkeep::sandbox {

Result<ProcessLimit> ProcessLimit::apply(
    CgroupVersion version, const std::string& directory, std::uint32_t processes) {
    ProcessLimit limit;
    limit.directory_ = directory;
    limit.version_ = version;
    BOOST_OUTCOME_TRY(limit.change(processes));
    return limit;
}

ProcessLimit ProcessLimit::take_over(std::string directory, CgroupVersion version) {
    ProcessLimit limit;
    limit.directory_ = std::move(directory);
    limit.version_ = version;
    return limit;
}

Status ProcessLimit::change(std::uint32_t processes) {
    // Pid 1 counts.
    return write_control_file(directory_ + "/pids.max", std::to_string(processes + 1));
}

std::uint64_t ProcessLimit::processes() const {
    return in_force() ? read_number(directory_ + "/pids.current") : 0;
}

std::uint64_t ProcessLimit::refusals() const {
    return in_force() ? refusals_file_.keyed(directory_ + "/pids.events", "max") : 0;
}

}  // namespace cellkeep::sandbox
