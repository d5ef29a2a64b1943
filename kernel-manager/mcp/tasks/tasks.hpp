// SPDX-License-Identifier: Apache-2.0
//
// The tasks that clients of 2026-07-28 were given in place of the result of a run that takes long
// (the extension io.modelcontextprotocol/tasks). A task names its run and owns nothing of it: it
// keeps neither a session nor an execution. It belongs to the principal that made the call. The
// time is the caller's. io_context thread only.
#pragma once

#include "kernel-manager/mcp/tools/run_answer.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::mcp {

struct Task {
    using Time = std::chrono::system_clock::time_point;

    std::string id;         // "tsk_" and 32 hexadecimal digits
    std::string principal;  // its name
    RunPlace place;
    std::string execution_id;
    Time created;
    Time updated;  // when its status was seen to be another one
    std::string status = "working";
    bool told = false;  // its client knows what has become of the variables: place says it
};

class Tasks {
 public:
    Tasks() = default;
    Tasks(const Tasks&) = delete;
    Tasks& operator=(const Tasks&) = delete;
    ~Tasks() = default;

    /// Null: there are kTasksMax, or kPrincipalTasksMax of this principal, or there is no
    /// randomness for an id. The pointer is good until the next change.
    const Task* add(
        const std::string& principal, RunPlace place, std::string execution_id, Task::Time now);
    /// Null: there is none of this id, it is another principal's, or it was made kTaskLife ago.
    Task* find(const std::string& principal, std::string_view id, Task::Time now);
    std::size_t size() const { return tasks_.size(); }

    /// For another program in the server's process, and from one, before the first is added.
    std::vector<Task> pass_on() const;
    void go_on(const std::vector<Task>& passed);

 private:
    void forget_old(Task::Time now);

    std::map<std::string, Task, std::less<>> tasks_;
};

/// The members that every message about a task has.
nlohmann::json to_json(const Task& task);

}  // namespace cellkeep::mcp
