// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/passing/passed_text.hpp"

#include "kernel-manager/limits/limits.hpp"
#include "protocol/limits.hpp"

#include <fcntl.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace cellkeep::session {

using nlohmann::json;

namespace {

constexpr int kFirstPassedFd = 3;  // behind the standard streams

/// What is thrown here is caught in read_passed().
UniqueFd take_fd(const json& text, const char* name) {
    const int fd = text.at(name).get<int>();
    if (fd < kFirstPassedFd || ::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
        throw json::other_error::create(
            501, std::string("\"") + name + "\" names no open descriptor", &text);
    }
    return UniqueFd(fd);
}

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

/// One that may be missing: -1.
UniqueFd take_fd_if_any(const json& text, const char* name) {
    return text.at(name) == -1 ? UniqueFd() : take_fd(text, name);
}

json write_ends(const std::vector<process::CommandEnds>& commands) {
    json all = json::array();
    for (const process::CommandEnds& ends : commands) {
        all.push_back(
            {{"stdin", ends.input.get()},
             {"stdout", ends.out.get()},
             {"stderr", ends.err.get()},
             {"terminal", ends.controller.get()}});
    }
    return all;
}

/// A program of an older format writes none.
std::vector<process::CommandEnds> read_ends(const json& session) {
    std::vector<process::CommandEnds> all;
    if (!session.contains("commands")) {
        return all;
    }
    for (const json& text : session.at("commands")) {
        process::CommandEnds ends;
        ends.input = take_fd_if_any(text, "stdin");
        ends.out = take_fd_if_any(text, "stdout");
        ends.err = take_fd_if_any(text, "stderr");
        ends.controller = take_fd_if_any(text, "terminal");
        all.push_back(std::move(ends));
    }
    return all;
}

json write_interpreter(const PassedInterpreter& interpreter) {
    return {
        {"worker", interpreter.id},
        {"pidfd", interpreter.pidfd.get()},
        {"link", interpreter.link.get()},
        {"stdout", interpreter.stdout_fd.get()},
        {"stderr", interpreter.stderr_fd.get()}};
}

PassedInterpreter read_interpreter(const json& text) {
    PassedInterpreter interpreter;
    interpreter.id = text.at("worker").get<sandbox::WorkerId>();
    interpreter.pidfd = take_fd(text, "pidfd");
    interpreter.link = take_fd(text, "link");
    interpreter.stdout_fd = take_fd(text, "stdout");
    interpreter.stderr_fd = take_fd(text, "stderr");
    return interpreter;
}

/// A program of an older format writes none.
std::vector<PassedInterpreter> read_further_ends(const json& session) {
    std::vector<PassedInterpreter> further;
    const json all = session.value("further", json::array());
    if (!all.is_array() || all.size() >= kSessionLanguagesMax) {
        throw json::other_error::create(502, "no further interpreters of a session", &session);
    }
    for (const json& text : all) {
        further.push_back(read_interpreter(text));
    }
    return further;
}

json write_checkpoint_ends(const CheckpointEnds& ends) {
    json sleepers = json::array();
    for (const CheckpointEnds::Sleeper& sleeper : ends.sleepers) {
        sleepers.push_back({{"pidfd", sleeper.pidfd.get()}, {"socket", sleeper.socket.get()}});
    }
    return {{"sleepers", std::move(sleepers)}, {"contents", ends.blobs.get()}};
}

/// A program of an older format writes none.
CheckpointEnds read_checkpoint_ends(const json& session) {
    CheckpointEnds ends;
    if (!session.contains("checkpoints")) {
        return ends;
    }
    const json& text = session.at("checkpoints");
    const json& sleepers = text.at("sleepers");
    if (!sleepers.is_array() || sleepers.size() > limits::kCheckpointsMax) {
        throw json::other_error::create(502, "no checkpoints of a session", &session);
    }
    for (const json& sleeper : sleepers) {
        ends.sleepers.push_back({take_fd(sleeper, "pidfd"), take_fd(sleeper, "socket")});
    }
    ends.blobs = take_fd_if_any(text, "contents");
    return ends;
}

json write_session(const PassedSession& session) {
    json further = json::array();
    for (const PassedInterpreter& interpreter : session.further) {
        further.push_back(write_interpreter(interpreter));
    }
    json written = write_interpreter(session.interpreter);
    written.update(
        {{"id", session.id},
         {"kernel_id", session.kernel_id},
         {"slot", session.slot},
         {"state", session.state},
         {"sandbox", write_sandbox(session.sandbox)},
         {"further", std::move(further)},
         {"checkpoints", write_checkpoint_ends(session.checkpoints)},
         {"commands", write_ends(session.commands)},
         {"zygote", session.zygote ? json(*session.zygote) : json()}});
    return written;
}

PassedSession read_session(const json& text) {
    PassedSession session;
    session.id = text.at("id").get<std::string>();
    session.kernel_id = text.at("kernel_id").get<std::string>();
    session.slot = text.at("slot").get<std::uint32_t>();
    session.state = text.at("state");
    session.sandbox = read_sandbox(text.at("sandbox"));
    session.interpreter = read_interpreter(text);
    session.further = read_further_ends(text);
    session.checkpoints = read_checkpoint_ends(text);
    session.commands = read_ends(text);
    if (const json& zygote = text.at("zygote"); !zygote.is_null()) {
        session.zygote = zygote.get<std::size_t>();
    }
    return session;
}

void add_descriptors(const sandbox::PassedSandbox& sandbox, std::vector<int>& all) {
    for (const UniqueFd* fd :
         {&sandbox.pidfd, &sandbox.control, &sandbox.events, &sandbox.workspace}) {
        all.push_back(fd->get());
    }
}

void add_descriptors(const PassedInterpreter& interpreter, std::vector<int>& all) {
    for (const UniqueFd* fd :
         {&interpreter.pidfd, &interpreter.link, &interpreter.stdout_fd, &interpreter.stderr_fd}) {
        all.push_back(fd->get());
    }
}

void add_descriptors(const CheckpointEnds& ends, std::vector<int>& all) {
    for (const CheckpointEnds::Sleeper& sleeper : ends.sleepers) {
        all.push_back(sleeper.pidfd.get());
        all.push_back(sleeper.socket.get());
    }
    if (ends.blobs) {
        all.push_back(ends.blobs.get());
    }
}

void add_ends(const std::vector<process::CommandEnds>& commands, std::vector<int>& all) {
    for (const process::CommandEnds& ends : commands) {
        for (const UniqueFd* fd : {&ends.input, &ends.out, &ends.err, &ends.controller}) {
            if (*fd) {
                all.push_back(fd->get());
            }
        }
    }
}

}  // namespace

json write_passed(const PassedSessions& passed) {
    json sessions = json::array();
    for (const PassedSession& session : passed.sessions) {
        sessions.push_back(write_session(session));
    }
    json zygotes = json::array();
    for (const sandbox::PassedSandbox& zygote : passed.zygotes) {
        zygotes.push_back(write_sandbox(zygote));
    }
    json leases = json::array();
    for (const auto& lease : passed.leases) {
        leases.push_back(json::object({{"fd", lease->get()}}));
    }
    json front_fds = json::array();
    for (const UniqueFd& fd : passed.front_fds) {
        front_fds.push_back(json::object({{"fd", fd.get()}}));
    }
    return {
        {"sessions", std::move(sessions)},
        {"front_fds", std::move(front_fds)},
        {"zygotes", std::move(zygotes)},
        {"leases", std::move(leases)},
        {"catalogs", passed.catalogs},
        {"fronts", passed.fronts},
        {"cgroups_named", passed.cgroups_named}};
}

std::vector<int> descriptors_of(const PassedSessions& passed) {
    std::vector<int> all;
    for (const PassedSession& session : passed.sessions) {
        add_descriptors(session.sandbox, all);
        add_descriptors(session.interpreter, all);
        for (const PassedInterpreter& interpreter : session.further) {
            add_descriptors(interpreter, all);
        }
        add_descriptors(session.checkpoints, all);
        add_ends(session.commands, all);
    }
    for (const sandbox::PassedSandbox& zygote : passed.zygotes) {
        add_descriptors(zygote, all);
    }
    for (const UniqueFd& fd : passed.front_fds) {
        all.push_back(fd.get());
    }
    for (const auto& lease : passed.leases) {
        all.push_back(lease->get());
    }
    return all;
}

Result<PassedSessions> read_passed(const json& value) {
    try {
        PassedSessions passed;
        for (const json& session : value.at("sessions")) {
            passed.sessions.push_back(read_session(session));
        }
        for (const json& zygote : value.at("zygotes")) {
            passed.zygotes.push_back(read_sandbox(zygote));
        }
        for (const json& lease : value.at("leases")) {
            passed.leases.push_back(std::make_shared<const UniqueFd>(take_fd(lease, "fd")));
        }
        if (value.contains("front_fds")) {  // a program of an older format writes none
            for (const json& held : value.at("front_fds")) {
                passed.front_fds.push_back(take_fd(held, "fd"));
            }
        }
        passed.catalogs = value.at("catalogs").get<std::vector<json>>();
        passed.fronts = value.at("fronts");
        passed.cgroups_named = value.at("cgroups_named").get<std::uint64_t>();
        return passed;
    } catch (const json::exception& failure) {
        return Error(ErrorCode::kProtocol, std::string("passed sessions: ") + failure.what());
    }
}

}  // namespace cellkeep::session
