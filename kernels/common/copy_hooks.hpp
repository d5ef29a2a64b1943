// SPDX-License-Identifier: Apache-2.0
//
// What a language does around the copy of its process (checkpoint.hpp). Values and an interface.
#pragma once

#include <string_view>
#include <vector>

namespace cellkeep::kernels {

class CopyHooks {
 public:
    /// What the copy depends on, before anything is done.
    struct State {
        /// A word of protocol::kNotForkable…; empty: it can be copied.
        std::string_view refusal;
        /// Sockets of the language's own, which no user has opened.
        std::vector<int> own_sockets;
        /// Something of the language's own runs between requests, such as a task of an event loop.
        bool goes_on = false;
        /// Other threads can go on in the copy.
        bool carries_threads = true;
    };

    CopyHooks() = default;
    CopyHooks(const CopyHooks&) = delete;
    CopyHooks& operator=(const CopyHooks&) = delete;
    virtual ~CopyHooks() = default;

    virtual State look() = 0;
    /// The fork is next; one of the other two follows. carries_threads: other threads go on in it,
    /// with the locks that they hold. False: there are none, or they are lost.
    virtual void before_copy(bool carries_threads) = 0;
    /// In the process that was copied, or was not after all.
    virtual void after_copy() = 0;
    /// In a process that goes on from the copy, with its new link and outputs. reseed: its random
    /// states are to be others than the copied process's.
    virtual void after_rollback(bool reseed) = 0;
    /// In the copy, before the first process leaves it for a branch, of which after_rollback() then
    /// has less to do.
    virtual void settle_copy() {}
};

}  // namespace cellkeep::kernels
