// SPDX-License-Identifier: Apache-2.0
//
// A session's way from one program in the server's process to another: what keeps it from passing,
// what it does at present, what is written down of its parts, and how they go on from that.
// io_context thread only.
#pragma once

#include "kernel-manager/execution/saved_texts.hpp"
#include "kernel-manager/limits/session_account.hpp"
#include "kernel-manager/output/output_fanout.hpp"
#include "kernel-manager/process/command_table.hpp"
#include "kernel-manager/session/checkpoints/auto_checkpoints.hpp"
#include "kernel-manager/session/checkpoints/session_branches.hpp"
#include "kernel-manager/session/checkpoints/session_checkpoints.hpp"
#include "kernel-manager/session/idle_freezer.hpp"
#include "kernel-manager/session/kernel_starter.hpp"
#include "kernel-manager/session/network/port_connection.hpp"
#include "kernel-manager/session/passing/passed_sessions.hpp"
#include "kernel-manager/session/sandbox_watch.hpp"
#include "kernel-manager/session/session_executions.hpp"
#include "kernel-manager/session/session_kernels.hpp"
#include "kernel-manager/session/session_life.hpp"
#include "kernel-manager/session/session_setup.hpp"
#include "protocol/support/result.hpp"
#include "sandbox/sandbox.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace cellkeep::session {

class SessionPassage {
 public:
    /// Of the session; all stays where it is.
    struct Parts {
        boost::asio::io_context& io;
        SessionSetup& setup;
        sandbox::Sandbox& sandbox;
        SessionAccount& account;
        OutputFanout& output;
        SavedTexts& saved_texts;
        SessionLife& life;
        KernelStarter& starter;
        SessionKernels& kernels;
        SessionExecutions& executions;
        SessionCheckpoints& checkpoints;
        SessionBranches& branches;
        process::CommandTable& commands;
        AutoCheckpointer& auto_checkpoints;
        SandboxWatch& watch;
        IdleFreezer& freezer;
        PortConnector& ports;
        bool& closed;
    };
    explicit SessionPassage(Parts parts) : parts_(parts) {}
    SessionPassage(const SessionPassage&) = delete;
    SessionPassage& operator=(const SessionPassage&) = delete;
    ~SessionPassage() = default;

    /// ManagedSession's.
    std::optional<std::string> find_obstacle() const;
    std::optional<std::string> find_newer_part() const;
    std::optional<std::string> find_work(bool runs_pass) const;
    Result<std::uint32_t> ask_for_death_signal(bool wanted);
    Status wait_for_death_signal(std::uint32_t asked, std::chrono::milliseconds patience);
    std::size_t passed_bytes(SharedParts& shared) const;
    PassedSession pass_on(SharedParts& shared);
    Status go_on(PassedSession passed);

 private:
    Status freeze_again();

    const Parts parts_;
};

}  // namespace cellkeep::session
