// SPDX-License-Identifier: Apache-2.0
//
// A session as its owner, the service, sees it: how it starts, goes to a client, and ends in steps.
// Front ends see only Session. The parts of the service work on this interface, so that they can be
// tested without sandboxes. io_context thread only.
#pragma once

#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/session/checkpoints/branch_seed.hpp"
#include "kernel-manager/session/checkpoints/family.hpp"
#include "kernel-manager/session/passing/passed_sessions.hpp"
#include "kernel-manager/session/session.hpp"
#include "kernel-manager/session/session_options.hpp"
#include "protocol/support/result.hpp"
#include "sandbox/sandbox.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace cellkeep::session {

class ManagedSession : public Session {
 public:
    virtual const std::string& kernel_id() const = 0;
    virtual const SessionOptions& options() const = 0;
    /// The zygote that made its sandbox; null if none did.
    virtual std::shared_ptr<sandbox::Zygote> zygote() const = 0;

    /// Puts the files in place, starts the kernel and waits until it has answered. After a failure
    /// the session is only good for its end. The same holds for adopt().
    virtual boost::asio::awaitable<Status> start() = 0;
    /// Gives a spare to a client: files, variables and directory are put in place, everything else
    /// in the options is in force from now on. Options that its sandbox was made with must be
    /// equal.
    virtual boost::asio::awaitable<Status> adopt(std::string kernel_id, SessionOptions options) = 0;
    /// The callback gets the reason when the session asks for its own end.
    virtual void set_on_end_requested(std::function<void(Death)> callback) = 0;

    /// What a branch of it is made with, from a checkpoint of it. kNotFound, kUnavailable.
    virtual Result<BranchSeed> seed_branch(const std::string& checkpoint, bool /*reseed*/) {
        return Error::in_field(
            ErrorCode::kNotFound, "from", "the session has no checkpoint " + checkpoint);
    }
    /// Null: it has no branches and is none.
    virtual std::shared_ptr<FamilyMember> family() const { return nullptr; }

    // --- its way to another program in the server's process
    /// Why it cannot pass as it is, for people; nullopt: it can, when it is at rest.
    virtual std::optional<std::string> find_obstacle() const { return "it is of another kind"; }
    /// Its sandbox has lost its first process, and with it all others: it is dead, nothing can run
    /// in it again, and it is an obstacle until it ends.
    virtual bool is_lost() const { return false; }
    /// What it has that programs of an older format take over none of, for people; nullopt:
    /// nothing.
    virtual std::optional<std::string> find_newer_part() const { return std::nullopt; }
    /// What it does at present; nullopt: it is at rest. runs_pass: executions whose code runs may
    /// pass, too, and those that can are no work.
    virtual std::optional<std::string> find_work(bool /*runs_pass*/) const { return std::nullopt; }
    /// Asks its pid 1 to end with the thread that made it (wanted), or to outlive that thread
    /// (sandbox::Sandbox). The first only sends the request, the second waits for its answer.
    virtual Result<std::uint32_t> ask_for_death_signal(bool /*wanted*/) {
        return Error(ErrorCode::kUnavailable, "death signal: it is of another kind");
    }
    virtual Status wait_for_death_signal(std::uint32_t /*asked*/, std::chrono::milliseconds) {
        return ok();
    }
    /// About how many bytes of values pass_on() gives away; shared is a thing of this call's.
    virtual std::size_t passed_bytes(SharedParts& /*shared*/) const { return 0; }
    /// Gives away what another program needs to go on with it. Its processes live on, and no
    /// client learns of an end. The owner drops this object then. Precondition: there is neither an
    /// obstacle nor work.
    virtual PassedSession pass_on(SharedParts& /*shared*/) { return {}; }
    /// In place of start(), of one that another program has left.
    virtual Status go_on(PassedSession /*passed*/) {
        return Error(ErrorCode::kUnavailable, "go on: it is of another kind");
    }

    // --- its end, in steps; close() is all of them
    /// Every request is answered and every client learns of the end; nothing is torn down yet.
    /// Idempotent.
    virtual void end_conversation(const Death& reason) = 0;
    /// Kills everything inside without waiting.
    virtual void kill_inside() = 0;
    /// After end_conversation(): what is left to destroy, which is the caller's from now on and may
    /// be destroyed on any thread. Null if nothing is left.
    virtual std::shared_ptr<sandbox::Sandbox> release_sandbox() = 0;
    /// The same while it has branches: nothing is killed, and sandbox::Sandbox::retire() is next.
    virtual std::shared_ptr<sandbox::Sandbox> set_sandbox_aside() { return nullptr; }
    /// After end_conversation(): destroys the sandbox here. Blocks as sandbox::Sandbox::destroy()
    /// does.
    virtual Status remove_leftovers(std::chrono::milliseconds patience) = 0;
};

}  // namespace cellkeep::session
