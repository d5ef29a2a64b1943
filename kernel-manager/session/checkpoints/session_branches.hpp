// SPDX-License-Identifier: Apache-2.0
//
// A session and its branches: what each of them gets from it, and how its own interpreter comes if
// it is a branch itself. Owned by the session. io_context thread only.
#pragma once

#include "kernel-manager/kernel/process/kernel_process.hpp"
#include "kernel-manager/session/checkpoints/branch_seed.hpp"
#include "kernel-manager/session/checkpoints/session_checkpoints.hpp"
#include "kernel-manager/session/session_setup.hpp"
#include "protocol/support/alarm.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/turns.hpp"
#include "sandbox/sandbox.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <functional>
#include <memory>
#include <string>

namespace cellkeep::session {

/// Branches that leave a session at the same time. A copy that sleeps lets one go after the other:
/// while one goes, the files of the next are put in place, and the copy is asked for it.
inline constexpr std::size_t kDeparturesAtOnce = 2;

/// What is left of a session that has ended answers for its branches, as long as it is there.
void let_answer(FamilyMember& member, const std::shared_ptr<sandbox::Sandbox>& rest);

class SessionBranches {
 public:
    /// Of the session; all stays where it is.
    struct Parts {
        SessionSetup& setup;
        sandbox::Sandbox& sandbox;
        SessionCheckpoints& checkpoints;
    };
    /// settle: the session is used, and what it does by itself to its interpreter has ended.
    SessionBranches(
        boost::asio::io_context& io,
        Parts parts,
        std::function<boost::asio::awaitable<void>()> settle,
        KeepAlive keep_session);
    SessionBranches(const SessionBranches&) = delete;
    SessionBranches& operator=(const SessionBranches&) = delete;
    ~SessionBranches() = default;

    /// ManagedSession::seed_branch() of a session that lives.
    Result<BranchSeed> seed(const std::string& checkpoint, bool reseed);
    /// There are some that are not gone.
    bool any() const { return setup_.family && setup_.family->branches() > 0; }

    /// It is one, and its interpreter has not come yet.
    bool is_awaited() const { return setup_.come != nullptr; }
    /// BranchSeed::come() of its own. The process is not spoken to before it was found powerless
    /// and is charged to this session.
    boost::asio::awaitable<Result<WokenProcess>> arrive();
    /// For clients: where it comes from. Precondition: it is one.
    std::string describe_origin() const;

    /// ManagedSession::set_sandbox_aside().
    std::shared_ptr<sandbox::Sandbox> set_sandbox_aside();
    /// The sandbox is going: it answers for no branch any more, unless it was set aside.
    void forget_sandbox();

 private:
    Result<std::shared_ptr<sandbox::BranchLauncher>> find_launcher(const std::string& checkpoint);
    Result<BranchTarget> make_target();
    decltype(WokenProcess::admit) make_admission() const;
    boost::asio::awaitable<Result<WokenProcess>> send_off(
        std::string checkpoint, bool reseed, BranchTarget target);

    boost::asio::io_context& io_;
    SessionSetup& setup_;
    sandbox::Sandbox& sandbox_;
    SessionCheckpoints& checkpoints_;
    const std::function<boost::asio::awaitable<void>()> settle_;
    const KeepAlive keep_session_;
    const std::shared_ptr<Turns> departures_;
    /// Of branches that are on their way, which keep it.
    std::weak_ptr<sandbox::BranchLauncher> launcher_;
    bool is_set_aside_ = false;
};

}  // namespace cellkeep::session
