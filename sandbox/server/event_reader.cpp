// SPDX-License-Identifier: Apache-2.0
#include "sandbox/server/event_reader.hpp"

#include "protocol/support/result.hpp"
#include "sandbox/policy/reported_calls.hpp"
#include "sandbox/shared/setup_step.hpp"

#include <sys/wait.h>

namespace cellkeep::sandbox {

namespace {

WorkerExit read_exit(const EventMessage& message) {
    WorkerExit exit;
    exit.id = message.worker_id;
    exit.signaled = WIFSIGNALED(message.wait_status);
    exit.status = exit.signaled ? WTERMSIG(message.wait_status) : WEXITSTATUS(message.wait_status);
    if (message.failed_error != 0) {
        exit.failure =
            Error::from_errno(message.failed_error, step_name(message.failed_step)).message();
    }
    return exit;
}

}  // namespace

SandboxEvent read_event(const EventMessage& message) {
    SandboxEvent event;
    switch (message.kind) {
        case EventKind::kDenied:
            event.kind = SandboxEvent::Kind::kDenied;
            event.denial = {system_call_name(message.system_call), message.count};
            break;
        case EventKind::kSwept:
            event.kind = SandboxEvent::Kind::kSwept;
            break;
        case EventKind::kGroupSwept:
            event.kind = SandboxEvent::Kind::kGroupSwept;
            event.group = message.group;
            break;
        case EventKind::kExited:
            event.worker = read_exit(message);
            break;
    }
    return event;
}

}  // namespace cellkeep::sandbox
