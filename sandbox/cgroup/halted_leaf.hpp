// SPDX-License-Identifier: Apache-2.0
//
// Ends all processes of a leaf together: first none of them runs any more, then all are killed.
// Linux takes some milliseconds to take a process apart, its memory first and its files last.
// What has to come after the last instruction of such a process need not wait for that. Not
// thread-safe.
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

#include <string>
#include <string_view>
#include <utility>

namespace cellkeep::sandbox {

class HaltedLeaf {
 public:
    /// From now on processes of the leaf stop, each at the end of the system call that it is in.
    /// An error: they go on.
    static Result<HaltedLeaf> begin(const std::string& path);
    HaltedLeaf(const HaltedLeaf&) = delete;
    HaltedLeaf& operator=(const HaltedLeaf&) = delete;
    HaltedLeaf(HaltedLeaf&&) = default;
    HaltedLeaf& operator=(HaltedLeaf&&) = delete;
    /// What has not been killed goes on; after seal() it is killed.
    ~HaltedLeaf();

    /// Has an exceptional condition (POLLPRI) when what the next two say may have changed since
    /// they were asked.
    int events_fd() const { return files_.events.get(); }
    /// All have stopped: none runs code or is in a system call, until it is killed or goes on.
    bool is_still() const { return says("frozen 1"); }
    /// There is none.
    bool is_empty() const { return says("populated 0"); }
    /// They stand still, and no instruction of theirs is to follow.
    void seal() { sealed_ = true; }
    /// SIGKILL to all. Of those that stand still no instruction follows.
    Status kill();

 private:
    struct Files {
        UniqueFd freeze;  // invalid when nothing is held any more
        UniqueFd kill;
        UniqueFd procs;
        UniqueFd events;
    };
    explicit HaltedLeaf(Files files) : files_(std::move(files)) {}
    bool says(std::string_view what) const;

    Files files_;
    bool sealed_ = false;
};

}  // namespace cellkeep::sandbox
