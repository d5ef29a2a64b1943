// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/passing/passed_sandbox_text.hpp"

#include <fcntl.h>

#include <limits>
#include <string>
#include <utility>

namespace cellkeep::session {

using nlohmann::json;

namespace {

constexpr int kFirstPassedFd = 3;  // behind the standard streams

json write_control(const sandbox::PassedControl& control) {
    return {
        {"directory", control.directory}, {"v2", control.version == sandbox::CgroupVersion::kV2}};
}

sandbox::PassedControl read_control(const json& text) {
    return {
        text.at("directory").get<std::string>(),
        text.at("v2").get<bool>() ? sandbox::CgroupVersion::kV2 : sandbox::CgroupVersion::kV1};
}

json write_cgroup(const sandbox::PassedCgroup& cgroup) {
    json leaves = json::array();
    for (const auto& [group, path] : cgroup.leaves) {
        leaves.push_back({{"group", group}, {"path", path}});
    }
    return {
        {"directories", cgroup.directories},
        {"unified", cgroup.unified},
        {"memory", write_control(cgroup.memory)},
        {"processes", write_control(cgroup.processes)},
        {"cpu", write_control(cgroup.cpu)},
        {"cpu_quota", cgroup.cpu_quota},
        {"cpu_time", write_control(cgroup.cpu_time)},
        {"freezer", write_control(cgroup.freezer)},
        {"leaves", std::move(leaves)},
        {"can_kill", cgroup.can_kill}};
}

sandbox::PassedCgroup read_cgroup(const json& text) {
    sandbox::PassedCgroup cgroup;
    cgroup.directories = text.at("directories").get<std::vector<std::string>>();
    cgroup.unified = text.at("unified").get<std::string>();
    cgroup.memory = read_control(text.at("memory"));
    cgroup.processes = read_control(text.at("processes"));
    cgroup.cpu = read_control(text.at("cpu"));
    cgroup.cpu_quota = text.at("cpu_quota").get<std::string>();
    cgroup.cpu_time = read_control(text.at("cpu_time"));
    cgroup.freezer = read_control(text.at("freezer"));
    for (const json& leaf : text.at("leaves")) {
        cgroup.leaves.emplace(
            leaf.at("group").get<sandbox::WorkerGroup>(), leaf.at("path").get<std::string>());
    }
    cgroup.can_kill = text.at("can_kill").get<bool>();
    return cgroup;
}

json write_isolation(const sandbox::IsolationReport& report) {
    json controls = json::array();
    for (const sandbox::Control& control : report.controls) {
        controls.push_back(
            {{"name", control.name},
             {"state", static_cast<int>(control.state)},
             {"mechanism", control.mechanism},
             {"detail", control.detail},
             {"fix", control.fix}});
    }
    return controls;
}

sandbox::IsolationReport read_isolation(const json& text) {
    sandbox::IsolationReport report;
    for (const json& control : text) {
        report.controls.push_back(
            {control.at("name").get<std::string>(),
             static_cast<sandbox::ControlState>(control.at("state").get<int>()),
             control.at("mechanism").get<std::string>(),
             control.at("detail").get<std::string>(),
             control.at("fix").get<std::string>()});
    }
    return report;
}

}  // namespace

UniqueFd take_fd(const json& text, const char* name) {
    const int fd = text.at(name).get<int>();
    if (fd < kFirstPassedFd || ::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
        throw json::other_error::create(
            501, std::string("\"") + name + "\" names no open descriptor", &text);
    }
    return UniqueFd(fd);
}

UniqueFd take_fd_if_any(const json& text, const char* name) {
    return text.at(name) == -1 ? UniqueFd() : take_fd(text, name);
}

std::uint32_t read_slot(const json& text) {
    const json& slot = text.at("slot");
    if (!slot.is_number_unsigned() ||
        slot.get<std::uint64_t>() > std::numeric_limits<std::uint32_t>::max()) {
        throw json::other_error::create(502, "\"slot\" is no number of a session", &text);
    }
    return slot.get<std::uint32_t>();
}

json write_sandbox(const sandbox::PassedSandbox& sandbox) {
    return {
        {"pidfd", sandbox.pidfd.get()},
        {"control", sandbox.control.get()},
        {"events", sandbox.events.get()},
        {"workspace", sandbox.workspace.get()},
        {"cgroup", write_cgroup(sandbox.cgroup)},
        {"isolation", write_isolation(sandbox.isolation)},
        {"file_uid", sandbox.file_uid},
        {"file_gid", sandbox.file_gid},
        {"last_worker", sandbox.last_worker},
        {"last_request", sandbox.last_request}};
}

sandbox::PassedSandbox read_sandbox(const json& text) {
    sandbox::PassedSandbox sandbox;
    sandbox.pidfd = take_fd(text, "pidfd");
    sandbox.control = take_fd(text, "control");
    sandbox.events = take_fd(text, "events");
    sandbox.workspace = take_fd(text, "workspace");
    sandbox.cgroup = read_cgroup(text.at("cgroup"));
    sandbox.isolation = read_isolation(text.at("isolation"));
    sandbox.file_uid = text.at("file_uid").get<uid_t>();
    sandbox.file_gid = text.at("file_gid").get<gid_t>();
    sandbox.last_worker = text.at("last_worker").get<std::uint32_t>();
    sandbox.last_request = text.at("last_request").get<std::uint32_t>();
    return sandbox;
}

void add_descriptors(const sandbox::PassedSandbox& sandbox, std::vector<int>& all) {
    for (const UniqueFd* fd :
         {&sandbox.pidfd, &sandbox.control, &sandbox.events, &sandbox.workspace}) {
        all.push_back(fd->get());
    }
}

}  // namespace cellkeep::session
