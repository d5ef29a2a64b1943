// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/tasks/tasks.hpp"

#include "kernel-manager/mcp/limits.hpp"
#include "protocol/support/syscall.hpp"
#include "protocol/support/time.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::mcp {

namespace {

constexpr std::size_t kTaskIdBytes = 16;

}  // namespace

const Task* Tasks::add(
    const std::string& principal, RunPlace place, std::string execution_id, Task::Time now) {
    forget_old(now);
    const auto owned = std::count_if(tasks_.begin(), tasks_.end(), [&](const auto& each) {
        return each.second.principal == principal;
    });
    if (tasks_.size() >= kTasksMax || static_cast<std::size_t>(owned) >= kPrincipalTasksMax) {
        return nullptr;
    }
    const auto digits = random_hex(kTaskIdBytes);
    if (digits.has_error()) {
        return nullptr;
    }
    Task task;
    task.id = "tsk_" + digits.value();
    task.principal = principal;
    task.place = std::move(place);
    task.execution_id = std::move(execution_id);
    task.created = now;
    task.updated = now;
    const std::string id = task.id;
    return &tasks_.insert_or_assign(id, std::move(task)).first->second;
}

Task* Tasks::find(const std::string& principal, std::string_view id, Task::Time now) {
    forget_old(now);
    const auto found = tasks_.find(id);
    return found == tasks_.end() || found->second.principal != principal ? nullptr : &found->second;
}

std::vector<Task> Tasks::pass_on() const {
    std::vector<Task> passed;
    for (const auto& [id, task] : tasks_) {
        passed.push_back(task);
    }
    return passed;
}

void Tasks::go_on(const std::vector<Task>& passed) {
    for (const Task& task : passed) {
        tasks_.insert_or_assign(task.id, task);
    }
}

void Tasks::forget_old(Task::Time now) {
    std::erase_if(
        tasks_, [now](const auto& each) { return now - each.second.created >= kTaskLife; });
}

nlohmann::json to_json(const Task& task) {
    return {
        {"taskId", task.id},
        {"status", task.status},
        {"createdAt", to_iso8601(task.created)},
        {"lastUpdatedAt", to_iso8601(task.updated)},
        {"ttlMs", std::chrono::milliseconds(kTaskLife).count()},
        {"pollIntervalMs", kTaskPollInterval.count()}};
}

}  // namespace cellkeep::mcp
