// SPDX-License-Identifier: Apache-2.0
//
// The way of all sessions that clients have from this program to another in the server's process,
// and from one. Pid 1 of a sandbox ends with the thread that made it (PR_SET_PDEATHSIG), and
// execve(2) ends all threads but one. So this program asks pid 1 to outlive its threads, and the
// next program asks it to watch again. In between pid 1 sees the server's end in its control
// socket. io_context thread only.
#pragma once

#include "kernel-manager/service/admission.hpp"
#include "kernel-manager/service/session_factory.hpp"
#include "kernel-manager/service/session_registry.hpp"
#include "kernel-manager/service/session_starter.hpp"
#include "kernel-manager/service/session_teardown.hpp"
#include "kernel-manager/session/passing/families_again.hpp"
#include "kernel-manager/session/passing/passed_sessions.hpp"
#include "protocol/support/result.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace cellkeep::session {

/// How long the pid 1s of all sandboxes together may take to answer; the loop stands still
/// meanwhile.
inline constexpr std::chrono::milliseconds kDeathSignalPatience{2000};

class SessionPassing {
 public:
    struct Parts {
        SessionRegistry& registry;
        Admission& admission;
        SessionFactory& factory;
        SessionStarter& starter;
        SessionTeardown& teardown;
    };

    explicit SessionPassing(Parts parts) : parts_(parts) {}

    /// "ID (reason)" of each session that cannot pass, even if it does nothing.
    std::vector<std::string> find_obstacles() const;
    /// The same of each that does something (ManagedSession::find_work).
    std::vector<std::string> find_work(bool runs_pass) const;
    /// About how many bytes of values all of them pass together.
    std::size_t passed_bytes() const;
    /// Before pass_on(), in the same turn of the loop. After an error everything is as it was.
    Status prepare();
    /// What prepare() did is taken back.
    void cancel();
    /// All of them, and what is left of those that they are branches of; what they share is in
    /// shared. Precondition: no obstacles, no work, prepare().
    void pass_on(SharedParts& shared, PassedSessions& passed);

    /// Makes the sessions of the program before this service's own. Front ends learn of them. A
    /// session that cannot be taken over ends, and `log` gets the reason. Comes before anything
    /// else.
    void take_over(
        PassedSessions passed,
        const SessionStarter::OnEnd& on_end,
        const std::function<void(const std::string&)>& log);

 private:
    enum class Unwatched { kStay, kEnd };
    Status want_death_signal(bool wanted, Unwatched unwatched);
    /// What a session that is taken over needs besides.
    struct Again {
        const SharedAgain& shared;
        FamiliesAgain& families;
        const SessionStarter::OnEnd& on_end;
    };
    Status take_over_one(PassedSession passed, const Again& again);
    Status take_over_remains(PassedRemains passed, const Again& again);
    std::vector<std::shared_ptr<sandbox::Zygote>> zygotes() const;

    const Parts parts_;
};

}  // namespace cellkeep::session
