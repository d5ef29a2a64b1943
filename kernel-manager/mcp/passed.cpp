// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/passed.hpp"

#include <chrono>
#include <stdexcept>
#include <utility>

namespace cellkeep::mcp {

using nlohmann::json;

namespace {

std::int64_t to_microseconds(Task::Time time) {
    return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
}

Task::Time read_time(const json& value) {
    const std::chrono::microseconds since(value.get<std::int64_t>());
    return Task::Time(std::chrono::duration_cast<Task::Time::duration>(since));
}

template <typename Enum>
Enum read_enum(const json& value, Enum last) {
    const int number = value.get<int>();
    if (number < 0 || number > static_cast<int>(last)) {
        throw std::out_of_range("a number that stands for nothing");
    }
    return static_cast<Enum>(number);
}

json write_subscription(const PassedSubscription& subscription) {
    return {
        {"principal", subscription.principal.name},
        {"role", static_cast<int>(subscription.principal.role)},
        {"seen", subscription.seen}};
}

PassedSubscription read_subscription(const json& value) {
    return {
        {value.at("principal").get<std::string>(),
         read_enum(value.at("role"), http::Role::kObserver)},
        value.at("seen").get<std::map<std::string, std::string>>()};
}

json write_client(const PassedClient& client) {
    const ClientCapabilities& can = client.capabilities;
    return {
        {"id", client.id},
        {"principal", client.principal},
        {"revision", client.revision},
        {"used", client.used},
        {"elicitation", can.elicitation},
        {"sampling", can.sampling},
        {"roots", can.roots},
        {"tasks", can.tasks},
        {"log_level", client.log_level ? json(static_cast<int>(*client.log_level)) : json()},
        {"subscription", client.subscription ? write_subscription(*client.subscription) : json()}};
}

PassedClient read_client(const json& value) {
    PassedClient client;
    client.id = value.at("id").get<std::string>();
    client.principal = value.at("principal").get<std::string>();
    client.revision = value.at("revision").get<std::string>();
    client.used = value.at("used").get<std::uint64_t>();
    client.capabilities = {
        value.at("elicitation").get<bool>(),
        value.at("sampling").get<bool>(),
        value.at("roots").get<bool>(),
        value.at("tasks").get<bool>()};
    if (const json& level = value.at("log_level"); !level.is_null()) {
        client.log_level = read_enum(level, LogLevel::kEmergency);
    }
    if (const json& subscription = value.at("subscription"); !subscription.is_null()) {
        client.subscription = read_subscription(subscription);
    }
    return client;
}

json write_task(const Task& task) {
    return {
        {"id", task.id},
        {"principal", task.principal},
        {"name", task.place.name},
        {"session", task.place.session_id},
        {"before", static_cast<int>(task.place.before)},
        {"note", task.place.note},
        {"made", task.place.created},
        {"execution", task.execution_id},
        {"created", to_microseconds(task.created)},
        {"updated", to_microseconds(task.updated)},
        {"status", task.status},
        {"told", task.told}};
}

Task read_task(const json& value) {
    Task task;
    task.id = value.at("id").get<std::string>();
    task.principal = value.at("principal").get<std::string>();
    task.place = {
        value.at("name").get<std::string>(),
        value.at("session").get<std::string>(),
        read_enum(value.at("before"), State::kLost),
        value.at("note").get<std::string>(),
        value.at("made").get<bool>()};
    task.execution_id = value.at("execution").get<std::string>();
    task.created = read_time(value.at("created"));
    task.updated = read_time(value.at("updated"));
    task.status = value.at("status").get<std::string>();
    task.told = value.at("told").get<bool>();
    return task;
}

}  // namespace

json to_json(const PassedClients& passed) {
    json clients = json::array();
    for (const PassedClient& client : passed.clients) {
        clients.push_back(write_client(client));
    }
    json tasks = json::array();
    for (const Task& task : passed.tasks) {
        tasks.push_back(write_task(task));
    }
    return {
        {"clients", std::move(clients)},
        {"uses", passed.uses},
        {"tasks", std::move(tasks)},
        {"seal_key", passed.seal_key}};
}

Result<PassedClients> read_passed_clients(const json& value) {
    try {
        PassedClients passed;
        for (const json& client : value.at("clients")) {
            passed.clients.push_back(read_client(client));
        }
        passed.uses = value.at("uses").get<std::uint64_t>();
        for (const json& task : value.at("tasks")) {
            passed.tasks.push_back(read_task(task));
        }
        passed.seal_key = value.at("seal_key").get<std::string>();
        return passed;
    } catch (const std::exception& failure) {
        return Error(ErrorCode::kProtocol, std::string("passed clients: ") + failure.what());
    }
}

}  // namespace cellkeep::mcp
