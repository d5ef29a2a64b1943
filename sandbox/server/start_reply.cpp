// SPDX-License-Identifier: Apache-2.0
#include "sandbox/server/start_reply.hpp"

#include "sandbox/shared/setup_step.hpp"

#include <cerrno>
#include <utility>

namespace cellkeep::sandbox {

Result<Worker> read_start_reply(const AskedStart& asked, InitChannel::Reply reply) {
    const ReplyMessage& message = reply.message;
    if (message.step == SetupStep::kServe && message.error == EBUSY) {
        return Error(
            ErrorCode::kUnavailable,
            "start: the processes that were killed before have not all ended yet");
    }
    if (message.error != 0) {
        const std::string object = message.step == SetupStep::kExec ? "(" + asked.program + ")"
                                   : message.step == SetupStep::kWorkerDirectory
                                       ? "(" + asked.directory + ")"
                                       : "";
        return Error::from_errno(message.error, step_name(message.step) + object);
    }
    if (reply.fds.size() != 1) {
        return Error(ErrorCode::kProtocol, "start: pid 1 sent no pidfd");
    }
    return Worker{asked.worker, std::move(reply.fds[0]), message.pid};
}

}  // namespace cellkeep::sandbox
