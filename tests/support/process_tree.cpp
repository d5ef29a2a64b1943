// SPDX-License-Identifier: Apache-2.0
#include "tests/support/process_tree.hpp"

#include <catch2/catch.hpp>

#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <utility>

namespace cellkeep::test {

std::vector<pid_t> children_of(pid_t pid) {
    std::vector<pid_t> children;
    std::error_code gone;
    const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
    for (std::filesystem::directory_iterator task(tasks, gone), end; !gone && task != end;
         task.increment(gone)) {
        std::ifstream list(task->path() / "children");
        for (pid_t child = 0; list >> child;) {
            children.push_back(child);
        }
    }
    return children;
}

std::string name_of(pid_t pid) {
    std::ifstream comm("/proc/" + std::to_string(pid) + "/comm");
    std::string name;
    std::getline(comm, name);
    return name;
}

char state_of(pid_t pid) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string line;
    std::getline(stat, line);
    const std::size_t end = line.rfind(") ");
    return end == std::string::npos ? '?' : line[end + 2];
}

pid_t find_descendant(const std::string& name) {
    std::vector<pid_t> left = children_of(::getpid());
    while (!left.empty()) {
        const pid_t pid = left.back();
        left.pop_back();
        if (name_of(pid) == name) {
            return pid;
        }
        const auto more = children_of(pid);
        left.insert(left.end(), more.begin(), more.end());
    }
    return 0;
}

StoppedProcess::StoppedProcess(pid_t pid) : pid_(pid) {
    REQUIRE(::kill(pid_, SIGSTOP) == 0);
    while (state_of(pid_) != 'T') {
        REQUIRE(state_of(pid_) != '?');
    }
}

void StoppedProcess::resume() {
    if (const pid_t pid = std::exchange(pid_, 0); pid != 0) {
        (void)::kill(pid, SIGCONT);  // Ignored: ESRCH means that it has been killed meanwhile.
    }
}

}  // namespace cellkeep::test
