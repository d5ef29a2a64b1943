// SPDX-License-Identifier: Apache-2.0
//
// The processes of this machine as /proc shows them, and one that a test has stopped.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace cellkeep::test {

/// The children of all its threads: sandboxes are made by those of the SandboxMaker.
std::vector<pid_t> children_of(pid_t pid);
std::string name_of(pid_t pid);
/// As in /proc/PID/stat (proc_pid_stat(5)); '?' if there is no such process.
char state_of(pid_t pid);
/// The first descendant of this process with the name; 0: there is none.
pid_t find_descendant(const std::string& name);

/// A process that does nothing until resume() or the end of this object. What a pid 1 is like that
/// the guest's load or quota keeps from running, for exactly as long as a test wants it to be.
class StoppedProcess {
 public:
    /// Returns when it has stopped.
    explicit StoppedProcess(pid_t pid);
    StoppedProcess(const StoppedProcess&) = delete;
    StoppedProcess& operator=(const StoppedProcess&) = delete;
    ~StoppedProcess() { resume(); }

    void resume();

 private:
    pid_t pid_;  // 0: it goes on
};

}  // namespace cellkeep::test
