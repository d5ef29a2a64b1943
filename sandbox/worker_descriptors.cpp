// SPDX-License-Identifier: Apache-2.0
#include "sandbox/worker_descriptors.hpp"

#include "sandbox/descriptor_kind.hpp"
#include "sandbox/layer_switch.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace cellkeep::sandbox {

namespace {

Error refused(const char* what, const char* why) {
    return {ErrorCode::kInvalidArgument, std::string("start: ") + what + " is not " + why};
}

}  // namespace

Result<std::vector<int>> worker_descriptors(const WorkerSpec& spec) {
    if (!is_output(spec.stdout_fd.get())) {
        return refused("stdout_fd", "the writing end of a pipe, nor /dev/null");
    }
    if (!is_output(spec.stderr_fd.get())) {
        return refused("stderr_fd", "the writing end of a pipe, nor /dev/null");
    }
    std::vector<int> fds{spec.stdout_fd.get(), spec.stderr_fd.get()};
    if (spec.link_fd) {
        if (!layer_removed("sent_descriptors") && !is_socket_pair_end(spec.link_fd.get())) {
            return refused("link_fd", "one end of a connected pair of Unix stream sockets");
        }
        fds.push_back(spec.link_fd.get());
    }
    return fds;
}

Status give_pipe(const UniqueFd& fd, uid_t uid, gid_t gid) {
    struct stat info {};
    if (::fstat(fd.get(), &info) < 0 ||
        (S_ISFIFO(info.st_mode) && info.st_uid != uid && !layer_removed("pipe_owner") &&
         ::fchown(fd.get(), uid, gid) < 0)) {
        return Error::from_errno(errno, "fchown(pipe)");
    }
    return ok();
}

}  // namespace cellkeep::sandbox
