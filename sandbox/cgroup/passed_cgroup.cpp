// SPDX-License-Identifier: Apache-2.0
#include "sandbox/cgroup/passed_cgroup.hpp"

#include "sandbox/cgroup/cgroup.hpp"

#include <utility>

namespace cellkeep::sandbox {

SessionCgroup SessionCgroup::take_over(PassedCgroup passed) {
    SessionCgroup cgroup;
    cgroup.directories_.take_over(std::move(passed.directories));
    cgroup.unified_ = std::move(passed.unified);
    cgroup.memory_ =
        MemoryLimit::take_over(std::move(passed.memory.directory), passed.memory.version);
    cgroup.processes_ =
        ProcessLimit::take_over(std::move(passed.processes.directory), passed.processes.version);
    cgroup.cpu_ = CpuLimit::take_over(
        std::move(passed.cpu.directory), passed.cpu.version, std::move(passed.cpu_quota));
    cgroup.cpu_time_ = CpuTime(passed.cpu_time.version, std::move(passed.cpu_time.directory));
    cgroup.freezer_ = Freezer(passed.freezer.version, std::move(passed.freezer.directory));
    cgroup.workers_ = WorkerLeaves::take_over(passed.leaves);
    cgroup.can_kill_ = passed.can_kill;
    return cgroup;
}

PassedCgroup SessionCgroup::pass_on() {
    PassedCgroup passed;
    passed.directories = directories_.pass_on();
    passed.unified = unified_;
    passed.memory = {memory_.directory(), memory_.version()};
    passed.processes = {processes_.directory(), processes_.version()};
    passed.cpu = {cpu_.directory(), cpu_.version()};
    passed.cpu_quota = cpu_.quota();
    passed.cpu_time = {cpu_time_.directory(), cpu_time_.version()};
    passed.freezer = {freezer_.directory(), freezer_.version()};
    passed.leaves = workers_.paths();
    passed.can_kill = can_kill_;
    return passed;
}

}  // namespace cellkeep::sandbox
