// SPDX-License-Identifier: Apache-2.0
#include "sandbox/server/worker_descriptors.hpp"

#include "sandbox/shared/descriptor_kind.hpp"
#include "sandbox/shared/layer_switch.hpp"
#include "sandbox/shared/messages.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>

namespace cellkeep::sandbox {

namespace {

Error refused(const char* what, const char* why) {
    return {ErrorCode::kInvalidArgument, std::string("start: ") + what + " is not " + why};
}

bool has_channels(const WorkerSpec& spec) {
    return spec.stdin_fd || spec.stdout_fd || spec.stderr_fd || spec.link_fd;
}

Result<std::vector<int>> worker_descriptors(const WorkerSpec& spec) {
    std::vector<int> fds;
    if (spec.terminal_fd) {
        if (has_channels(spec) || spec.warm) {
            return Error(ErrorCode::kInvalidArgument, "start: a terminal goes with no other");
        }
        if (!layer_removed("sent_descriptors") && !is_terminal(spec.terminal_fd.get())) {
            return refused("terminal_fd", "a process's side of a pseudo-terminal");
        }
        fds.push_back(spec.terminal_fd.get());
        return fds;
    }
    if (spec.stdin_fd) {
        if (spec.link_fd || spec.warm) {
            return Error(ErrorCode::kInvalidArgument, "start: an input goes with no link");
        }
        if (!layer_removed("sent_descriptors") && !is_input(spec.stdin_fd.get())) {
            return refused("stdin_fd", "the reading end of a pipe");
        }
        fds.push_back(spec.stdin_fd.get());
    }
    if (!is_output(spec.stdout_fd.get())) {
        return refused("stdout_fd", "the writing end of a pipe, nor /dev/null");
    }
    if (!is_output(spec.stderr_fd.get())) {
        return refused("stderr_fd", "the writing end of a pipe, nor /dev/null");
    }
    fds.push_back(spec.stdout_fd.get());
    fds.push_back(spec.stderr_fd.get());
    if (spec.link_fd) {
        if (!layer_removed("sent_descriptors") && !is_socket_pair_end(spec.link_fd.get())) {
            return refused("link_fd", "one end of a connected pair of Unix stream sockets");
        }
        fds.push_back(spec.link_fd.get());
    }
    return fds;
}

Result<std::string> start_text(const WorkerSpec& spec) {
    const bool has_outputs = spec.terminal_fd || (spec.stdout_fd && spec.stderr_fd);
    if (spec.argv.empty() || !spec.argv[0].starts_with('/') || !has_outputs) {
        return Error(
            ErrorCode::kInvalidArgument,
            "start: needs an absolute program path, stdout_fd and stderr_fd");
    }
    if (spec.group >= kWorkerGroupsMax) {
        return Error(ErrorCode::kInvalidArgument, "start: there is no such group of workers");
    }
    if (spec.argv.size() > kStartStringsMax || spec.env.size() > kStartStringsMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "start: more than " + std::to_string(kStartStringsMax) + " arguments or variables");
    }
    std::string text = spec.working_directory + '\0';
    for (const auto* list : {&spec.argv, &spec.env}) {
        for (const std::string& item : *list) {
            text += item + '\0';
        }
    }
    const auto terminators = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\0'));
    if (terminators != 1 + spec.argv.size() + spec.env.size()) {
        return Error(ErrorCode::kInvalidArgument, "start: a NUL byte in a string");
    }
    if (text.size() > kStartTextBytesMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "start: more than " + std::to_string(kStartTextBytesMax) + " bytes of text");
    }
    return text;
}

Status check_adoption(const WorkerSpec& spec) {
    if (spec.forked < 2 || spec.group >= kWorkerGroupsMax ||
        spec.born_in.value_or(0) >= kWorkerGroupsMax || spec.warm || !spec.argv.empty() ||
        !spec.env.empty() || spec.terminal_fd || spec.stdin_fd || spec.stdout_fd ||
        spec.stderr_fd || spec.link_fd) {
        return Error(
            ErrorCode::kInvalidArgument,
            "adopt: needs the number of a process and a group of workers, and nothing else");
    }
    return ok();
}

}  // namespace

Result<StartMessage> start_message(const WorkerSpec& spec) {
    StartMessage message;
    message.header.group = spec.group;
    if (spec.forked != 0) {
        BOOST_OUTCOME_TRY(check_adoption(spec));
        message.header.kind = RequestKind::kAdopt;
        message.header.forked = spec.forked;
        return message;
    }
    if (spec.born_in) {
        return Error(ErrorCode::kInvalidArgument, "start: the worker is not born yet");
    }
    BOOST_OUTCOME_TRY(message.text, start_text(spec));
    BOOST_OUTCOME_TRY(message.fds, worker_descriptors(spec));
    message.header.kind = RequestKind::kStart;
    message.header.warm = spec.warm ? 1 : 0;
    message.header.own_input = spec.stdin_fd ? 1 : 0;
    message.header.own_terminal = spec.terminal_fd ? 1 : 0;
    message.header.argument_count = static_cast<std::uint32_t>(spec.argv.size());
    message.header.environment_count = static_cast<std::uint32_t>(spec.env.size());
    return message;
}

Status give_pipe(const UniqueFd& fd, uid_t uid, gid_t gid) {
    if (!fd) {
        return ok();
    }
    struct stat info {};
    if (::fstat(fd.get(), &info) < 0 ||
        ((S_ISFIFO(info.st_mode) || is_terminal(fd.get())) && info.st_uid != uid &&
         !layer_removed("pipe_owner") && ::fchown(fd.get(), uid, gid) < 0)) {
        return Error::from_errno(errno, "fchown(pipe)");
    }
    return ok();
}

Status give_channels(const WorkerSpec& spec, uid_t uid, gid_t gid) {
    for (const UniqueFd* fd :
         {&spec.stdin_fd, &spec.stdout_fd, &spec.stderr_fd, &spec.terminal_fd}) {
        BOOST_OUTCOME_TRY(give_pipe(*fd, uid, gid));
    }
    return ok();
}

}  // namespace cellkeep::sandbox
