// SPDX-License-Identifier: Apache-2.0
//
// What pid 1 of a sandbox reports, in order. The refusals of the filter can be taken ahead of their
// turn, because a run must know of its own before it is answered; everything else that was read on
// the way waits for its turn. Not thread-safe.
#pragma once

#include "protocol/support/result.hpp"
#include "sandbox/sandbox.hpp"

#include <deque>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace cellkeep::session {

class SandboxInbox {
 public:
    /// The next report; nullopt if there is none now; an error if the sandbox is gone.
    using Source = std::function<Result<std::optional<sandbox::SandboxEvent>>()>;

    explicit SandboxInbox(Source source) : source_(std::move(source)) {}

    /// nullopt if there is no report now. kSandboxDied if the sandbox is gone.
    std::optional<sandbox::SandboxEvent> next();
    /// None has been read that next() has still to return.
    bool is_empty() const { return waiting_.empty(); }

    struct Denials {
        std::vector<sandbox::Denial> denials;
        /// There are reports in waiting that were not before: next() has to be called soon, because
        /// the descriptor no longer announces them.
        bool must_continue = false;
    };
    /// Reads all that has come.
    Denials take_denials();

 private:
    std::optional<sandbox::SandboxEvent> read();

    Source source_;
    std::deque<sandbox::SandboxEvent> waiting_;
};

}  // namespace cellkeep::session
