// SPDX-License-Identifier: Apache-2.0
//
// A session and the sessions that were branched from it are a family. Their sandboxes lie in one
// another: a branch's pid 1 ends with its parent's, the filter of an interpreter that came over
// still asks the pid 1 it came from, and all have one user of the host. So what is left of a
// session stays until its last branch is gone. io_context thread only.
#pragma once

#include "protocol/support/result.hpp"

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace cellkeep::session {

/// Branches of branches: the kernel allows 32 pid namespaces and 32 user namespaces in one another,
/// and each branch has one of those and two of these.
inline constexpr std::size_t kBranchDepthMax = 8;

class FamilyMember {
 public:
    using LetPass = std::function<Status(pid_t, std::uint32_t)>;

    /// A session that is no branch, with its number.
    explicit FamilyMember(std::uint32_t slot) : slot_(slot) {}
    /// A branch. leave() says that it is gone.
    explicit FamilyMember(std::shared_ptr<FamilyMember> parent);
    FamilyMember(const FamilyMember&) = delete;
    FamilyMember& operator=(const FamilyMember&) = delete;
    ~FamilyMember() { leave(); }

    /// The number of the session whose user all of the family have.
    std::uint32_t slot() const { return slot_; }
    /// 0: no branch.
    std::size_t depth() const { return depth_; }
    /// Null: no branch.
    const FamilyMember* parent() const { return parent_.get(); }
    /// Of it, that are not gone.
    std::size_t branches() const { return branches_; }

    /// sandbox::Sandbox::let_pass() of what it has.
    void set_let_pass(LetPass let_pass) { let_pass_ = std::move(let_pass); }
    /// A process of this member, by its numbers in all pid namespaces, its own last: in whatever
    /// sandbox its filter is from.
    void let_pass(const std::vector<pid_t>& numbers, std::uint32_t calls) const;

    /// Called once, when there is no branch any more; at once if there is none.
    void when_free(std::function<void()> call);
    /// Nothing of it is on the host any more. Idempotent.
    void leave();

 private:
    std::shared_ptr<FamilyMember> parent_;
    std::uint32_t slot_ = 0;
    std::size_t depth_ = 0;
    std::size_t branches_ = 0;
    bool left_ = false;
    LetPass let_pass_;
    std::function<void()> when_free_;
};

}  // namespace cellkeep::session
