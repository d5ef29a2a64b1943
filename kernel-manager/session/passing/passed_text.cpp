// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/passing/passed_text.hpp"

#include "kernel-manager/limits/limits.hpp"
#include "kernel-manager/session/passing/passed_branch.hpp"
#include "kernel-manager/session/passing/passed_sandbox_text.hpp"
#include "protocol/limits.hpp"

#include <optional>
#include <string>
#include <utility>

namespace cellkeep::session {

using nlohmann::json;

namespace {

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

/// Of one that is dead there is nothing.
json write_interpreter(const PassedInterpreter& interpreter) {
    if (!interpreter.pidfd) {
        return json::object();
    }
    return {
        {"worker", interpreter.id},
        {"pidfd", interpreter.pidfd.get()},
        {"link", interpreter.link.get()},
        {"stdout", interpreter.stdout_fd.get()},
        {"stderr", interpreter.stderr_fd.get()}};
}

PassedInterpreter read_interpreter(const json& text) {
    PassedInterpreter interpreter;
    if (text.is_object() && !text.contains("worker")) {
        return interpreter;
    }
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

json write_place(const std::optional<std::size_t>& place) {
    return place ? json(*place) : json();
}

std::optional<std::size_t> read_place(const json& place) {
    return place.is_null() ? std::nullopt : std::optional(place.get<std::size_t>());
}

json write_fds(const std::vector<UniqueFd>& fds) {
    json all = json::array();
    for (const UniqueFd& fd : fds) {
        all.push_back(json::object({{"fd", fd.get()}}));
    }
    return all;
}

/// A program of an older format writes none.
std::vector<UniqueFd> read_fds(const json& text, const char* name) {
    std::vector<UniqueFd> all;
    if (text.contains(name)) {
        for (const json& held : text.at(name)) {
            all.push_back(take_fd(held, "fd"));
        }
    }
    return all;
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
         {"network", write_fds(session.network)},
         {"zygote", write_place(session.zygote)},
         {"branch", write_branch(session.branch)}});
    return written;
}

PassedSession read_session(const json& text) {
    PassedSession session;
    session.id = text.at("id").get<std::string>();
    session.kernel_id = text.at("kernel_id").get<std::string>();
    session.slot = read_slot(text);
    session.state = text.at("state");
    session.sandbox = read_sandbox(text.at("sandbox"));
    session.interpreter = read_interpreter(text);
    session.further = read_further_ends(text);
    session.checkpoints = read_checkpoint_ends(text);
    session.commands = read_ends(text);
    session.network = read_fds(text, "network");
    session.zygote = read_place(text.at("zygote"));
    session.branch = read_branch(text.value("branch", json()));  // an older format has none
    return session;
}

json write_remains(const std::vector<PassedRemains>& remains) {
    json all = json::array();
    for (const PassedRemains& one : remains) {
        all.push_back(
            {{"id", one.id},
             {"parent", one.parent ? json(*one.parent) : json()},
             {"slot", one.slot},
             {"sandbox", write_sandbox(one.sandbox)},
             {"zygote", write_place(one.zygote)}});
    }
    return all;
}

std::vector<PassedRemains> read_remains(const json& all) {
    std::vector<PassedRemains> remains;
    if (!all.is_array()) {
        throw json::other_error::create(502, "no remains of sessions", &all);
    }
    for (const json& text : all) {
        PassedRemains one;
        one.id = read_session_id(text.at("id"));
        if (const json& parent = text.at("parent"); !parent.is_null()) {
            one.parent = read_session_id(parent);
        }
        one.slot = read_slot(text);
        one.sandbox = read_sandbox(text.at("sandbox"));
        one.zygote = read_place(text.at("zygote"));
        remains.push_back(std::move(one));
    }
    return remains;
}

void add_descriptors(const PassedInterpreter& interpreter, std::vector<int>& all) {
    if (!interpreter.pidfd) {
        return;
    }
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

void add_fds(const std::vector<UniqueFd>& fds, std::vector<int>& all) {
    for (const UniqueFd& fd : fds) {
        all.push_back(fd.get());
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
    return {
        {"sessions", std::move(sessions)},
        {"remains", write_remains(passed.remains)},
        {"front_fds", write_fds(passed.front_fds)},
        {"authority", passed.authority},
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
        add_fds(session.network, all);
    }
    for (const PassedRemains& remains : passed.remains) {
        add_descriptors(remains.sandbox, all);
    }
    for (const sandbox::PassedSandbox& zygote : passed.zygotes) {
        add_descriptors(zygote, all);
    }
    add_fds(passed.front_fds, all);
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
        // A program of an older format leaves none.
        passed.remains = read_remains(value.value("remains", json::array()));
        for (const json& zygote : value.at("zygotes")) {
            passed.zygotes.push_back(read_sandbox(zygote));
        }
        for (const json& lease : value.at("leases")) {
            passed.leases.push_back(std::make_shared<const UniqueFd>(take_fd(lease, "fd")));
        }
        passed.front_fds = read_fds(value, "front_fds");
        passed.authority = value.value("authority", json());
        passed.catalogs = value.at("catalogs").get<std::vector<json>>();
        passed.fronts = value.at("fronts");
        passed.cgroups_named = value.at("cgroups_named").get<std::uint64_t>();
        return passed;
    } catch (const json::exception& failure) {
        return Error(ErrorCode::kProtocol, std::string("passed sessions: ") + failure.what());
    }
}

}  // namespace cellkeep::session
