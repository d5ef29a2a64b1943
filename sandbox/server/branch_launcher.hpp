// SPDX-License-Identifier: Apache-2.0
//
// The process that makes the sandboxes of branches inside another one, their parent: a launcher
// that has entered the parent and forks for each. So the program is executed and the parent entered
// once for all branches that are made soon after one another. with_room() may be called on any
// thread.
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"
#include "sandbox/server/branch_place.hpp"
#include "sandbox/shared/messages.hpp"

#include <functional>
#include <span>
#include <string>
#include <utility>

namespace cellkeep::sandbox {

class BranchLauncher {
 public:
    /// Nothing runs before the first launch. place: of the parent.
    explicit BranchLauncher(BranchPlace place) : place_(std::move(place)) {}
    BranchLauncher(const BranchLauncher&) = delete;
    BranchLauncher& operator=(const BranchLauncher&) = delete;
    /// Kills the process and waits for its end.
    ~BranchLauncher() { end(); }

    /// Does the work of a launch: the process runs, and the parent's bounds on user namespaces are
    /// open, which are put back afterwards. One at a time in the whole process, because parents may
    /// have bounds in common: others wait. program: the launcher's, see find_launcher(). The first
    /// failure: of the process, of the work, of what is put back. It ends the process and what that
    /// has forked and is not finished; the next launch starts another.
    Status with_room(const std::string& program, const std::function<Status()>& work);

    /// Within the work: asks for one sandbox. fds: see LaunchRequest. kUnavailable: the process has
    /// ended.
    Status request(std::span<const int> fds) const;

 private:
    Status start(const std::string& program);
    Status await_parent();
    Status order_room(RoomOrder order);
    void end();

    const BranchPlace place_;
    UniqueFd process_;  // a pidfd; none: it is to be started
    UniqueFd control_;
    UniqueFd room_;  // of the process that opens the bounds
};

}  // namespace cellkeep::sandbox
