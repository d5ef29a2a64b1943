// SPDX-License-Identifier: Apache-2.0
//
// What pid 1 remembers, and how it makes workers: three parts of one program, init.cpp,
// init_start.cpp and init_adoption.cpp. Rules of child_setup.hpp apply.
#pragma once

#include "sandbox/inside/child_setup.hpp"
#include "sandbox/inside/denial_watch.hpp"
#include "sandbox/inside/group_sweeps.hpp"
#include "sandbox/inside/init_socket.hpp"
#include "sandbox/shared/messages.hpp"

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace cellkeep::sandbox {

enum class SlotState { kFree, kRunning, kEnded };

struct Slot {
    SlotState state = SlotState::kFree;
    pid_t pid = 0;
    std::uint32_t group = 0;
    /// What is left of one whose exec was not waited for: where it says that it failed.
    int failure_fd = -1;
    EventMessage event;
};

/// A kill of everything that is not over yet: a process inside may take long to die.
struct Sweep {
    bool pending = false;
    bool answers = false;  // a reply is owed, to this request
    std::uint32_t sequence = 0;
    bool tells = false;  // an event is owed
};

struct Init {
    const ChildState* child = nullptr;
    Sweep sweep;
    GroupSweeps group_sweeps;
    int signal_fd = -1;
    DenialWatch denials;
    std::array<Slot, kWorkersMax> slots{};
    ReceivedRequest request;
};

/// A request to start a worker, and its reply.
void handle_start(Init& init, const RequestHeader& header, std::size_t size) noexcept;
/// A request to adopt what a worker has forked, and its reply.
void handle_adoption(Init& init, const RequestHeader& header) noexcept;
/// The reply to either: a worker that has come into this slot goes to the server by its pidfd,
/// which is closed here.
void reply_with_worker(Init& init, ReplyMessage reply, Slot* slot, int pidfd) noexcept;
/// Null: there are kWorkersMax.
Slot* free_slot(Init& init) noexcept;
void reply_to(const Init& init, const ReplyMessage& reply) noexcept;
void close_failure(Slot& slot) noexcept;

}  // namespace cellkeep::sandbox
