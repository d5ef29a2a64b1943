// SPDX-License-Identifier: Apache-2.0
//
// One piece of work of SessionCheckpoints. A part of its sources.
#pragma once

#include "kernel-manager/session/checkpoints/session_checkpoints.hpp"

namespace cellkeep::session {

/// While it lives, no other piece of work is begun.
class SessionCheckpoints::Work {
 public:
    /// kHeld: nor does the interpreter begin anything.
    enum class Interpreter { kHeld, kFree };
    explicit Work(SessionCheckpoints& owner, Interpreter interpreter = Interpreter::kHeld)
        : owner_(owner), held_(interpreter == Interpreter::kHeld) {
        owner_.working_ = true;
        owner_.kept_.pin();
        if (held_) {
            owner_.hooks_.hold();
        }
    }
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;
    ~Work() {
        owner_.working_ = false;
        owner_.kept_.unpin();
        owner_.hooks_.starter.end_departure();
        if (held_) {
            owner_.hooks_.release();
        }
        owner_.hooks_.settled();
    }

 private:
    SessionCheckpoints& owner_;
    bool held_;
};

}  // namespace cellkeep::session
