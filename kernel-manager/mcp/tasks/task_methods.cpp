// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/tasks/task_methods.hpp"

#include "kernel-manager/mcp/asking/approval_question.hpp"
#include "kernel-manager/mcp/tools/run_end.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <utility>

namespace cellkeep::mcp {

namespace {

using TaskClock = std::chrono::system_clock;

constexpr const char* kForm = "elicitation/create";
constexpr std::string_view kWorking = "working";
constexpr std::string_view kAsking = "input_required";
constexpr std::string_view kCancelled = "cancelled";

RpcError bad_task_request(std::string why) {
    return {RpcCode::kInvalidParams, std::move(why), {}, {}};
}

void set_status(Task& task, std::string_view status) {
    if (task.status != status) {
        task.status = status;
        task.updated = TaskClock::now();
    }
}

RpcError missing_tasks() {
    return {
        RpcCode::kMissingCapability,
        "The client does not declare the extension \"" + std::string(kTasksExtension) + "\".",
        {{"requiredCapabilities", {{"extensions", {{kTasksExtension, nlohmann::json::object()}}}}}},
        {}};
}

}  // namespace

/// A task with its run, as far as that is still there.
struct TaskMethods::Found {
    Task* task = nullptr;
    std::shared_ptr<session::Session> session;
    std::shared_ptr<session::Execution> execution;
    ToolAnswer gone;  // the answer to its client if there is no execution
};

std::optional<RpcError> TaskMethods::refuse_listening(const Call& call, const Message& message) {
    const auto filter = message.params.find("notifications");
    const bool asks =
        filter != message.params.end() && filter->is_object() && filter->contains("taskIds");
    return asks && !call.peer().capabilities.tasks ? std::optional(missing_tasks()) : std::nullopt;
}

std::variant<TaskMethods::Found, RpcError> TaskMethods::find(
    const Call& call, const Message& message) {
    if (!call.peer().capabilities.tasks) {
        return missing_tasks();
    }
    const std::string* id = text_parameter(message, "taskId");
    if (id == nullptr) {
        return bad_task_request("\"taskId\" must be a string.");
    }
    Found found;
    found.task = bench_.tasks.find(call.principal().name, *id, TaskClock::now());
    if (found.task == nullptr) {
        return bad_task_request("There is no such task, or no longer.");
    }
    const auto session = bench_.names.find(call.principal(), found.task->place.session_id);
    if (session.has_error()) {
        found.gone = refuse(session.error(), State::kLost);
        return found;
    }
    found.session = session.value();
    found.execution = found.session->find_execution(found.task->execution_id);
    if (found.execution == nullptr) {
        found.gone = refuse(Refusal{
            "unknown_execution",
            "The session no longer remembers this run.",
            "list_sessions names the runs of each session.",
            State::kKept});
    }
    return found;
}

/// What the client's person is to be asked now; null: nothing, or they are not asked.
const governance::Approvals::Pending* TaskMethods::question(
    const Found& found, const Call& call) const {
    if (found.execution == nullptr || found.execution->result() || !bench_.approvals ||
        !http::may_approve(call.principal()) || !call.peer().capabilities.answers(kForm)) {
        return nullptr;
    }
    const auto* waiting = call_for_approval(*found.execution);
    return waiting == nullptr ? nullptr : bench_.approvals->find(waiting->approval);
}

Answerer::Answer TaskMethods::get(const Found& found, const Call& call) {
    Task& task = *found.task;
    nlohmann::json more = nlohmann::json::object();
    if (task.status == kCancelled) {
        return to_json(task);
    }
    if (found.execution == nullptr || found.execution->result()) {
        set_status(task, "completed");
        ToolAnswer answer = found.gone;
        if (found.execution != nullptr) {
            // The client reads once that variables were lost: in the first result of this task.
            answer = std::exchange(task.told, true)
                         ? finished_answer(task.place, *found.execution)
                         : end_run(bench_, *found.session, *found.execution, task.place);
        }
        more["result"] = to_json(answer);
        more["result"]["resultType"] = "complete";
    } else if (const auto* pending = question(found, call)) {
        set_status(task, kAsking);
        InputRequest asked = approval_question(*pending, task.place.name, bench_.other_approvers);
        more["inputRequests"][pending->id] = {
            {"method", asked.method}, {"params", std::move(asked.params)}};
    } else {
        set_status(task, kWorking);
        if (const auto* held = call_for_approval(*found.execution)) {
            more["statusMessage"] = "Its call of the tool " + held->tool + " waits for a person.";
        }
    }
    nlohmann::json told = to_json(task);
    told.update(more);
    return told;
}

Answerer::Answer TaskMethods::update(const Found& found, const Call& call, const Message& message) {
    const auto responses = message.params.find("inputResponses");
    if (responses == message.params.end() || !responses->is_object()) {
        return bad_task_request("\"inputResponses\" must be an object.");
    }
    const auto* pending = question(found, call);
    const auto answer = pending == nullptr ? responses->end() : responses->find(pending->id);
    if (answer == responses->end()) {
        return nlohmann::json::object();  // it is about what has been decided, or about nothing
    }
    const InputRequest asked{pending->id, kForm};
    if (std::string wrong = find_wrong_answer(asked, *answer); !wrong.empty()) {
        return bad_task_request(std::move(wrong));
    }
    if (const auto decided = read_approval_answer(*answer)) {
        const std::string id = pending->id;
        // Ignored: it has just been found.
        (void)bench_.approvals->settle(id, *decided, call.principal().name).has_value();
    }
    return nlohmann::json::object();
}

Answerer::Answer TaskMethods::cancel(const Found& found) {
    if (found.execution != nullptr && !found.execution->result()) {
        // Ignored: it may just have ended.
        (void)found.session->interrupt_execution(found.task->execution_id).has_value();
        set_status(*found.task, kCancelled);
    }
    return nlohmann::json::object();
}

Answerer::Answer TaskMethods::answer(const Call& call, const Message& message) {
    auto found = find(call, message);
    if (auto* refused = std::get_if<RpcError>(&found)) {
        return std::move(*refused);
    }
    const Found& task = std::get<Found>(found);
    if (message.method == "tasks/get") {
        return get(task, call);
    }
    return message.method == "tasks/cancel" ? cancel(task) : update(task, call, message);
}

}  // namespace cellkeep::mcp
