// SPDX-License-Identifier: Apache-2.0
//
// The request that the driver works on: its id, what it permits, whether its cell waits for the
// answer to a question, and its answer. Holds state only: it sends nothing and waits for nothing.
// One thread.
#pragma once

#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>

namespace cellkeep::kernels::driver {

/// What a request permits while it runs.
struct RequestRules {
    bool interruptible = false;
    bool allow_stdin = false;
    bool allow_tools = false;
};

class RunningRequest {
 public:
    /// Begins a request and returns its id, which differs from every earlier one. A driver that
    /// reads a request that cannot be interrupted forgets an interrupt (README.md, "Interrupts").
    std::uint64_t begin(RequestRules rules);
    /// Ends it. Returns its done event, or nullopt if it has none.
    std::optional<nlohmann::json> end();

    bool is_running() const { return id_.has_value(); }
    bool is_done() const { return done_.has_value(); }
    bool is_interruptible() const { return rules_.interruptible; }
    bool awaits_answer() const { return awaits_answer_; }

    /// Keeps a done event. kProtocol: it is not the first one of the running request.
    Status take_done(nlohmann::json event);

    enum class Asks { kInput, kTool };
    enum class Answer { kAsk, kRefuse };
    /// How a question is answered. kProtocol: nothing runs, or the last question is still open
    /// and no interrupt has ended it.
    Result<Answer> take_question(Asks what) const;
    /// Whether a question has been passed on and is not answered.
    void set_awaits_answer(bool awaits) { awaits_answer_ = awaits; }

    /// Takes note of an interrupt. Returns false if it must not reach the driver: its cell has
    /// ended, or the request cannot be interrupted.
    bool take_interrupt();
    /// Returns whether the driver may still remember an interrupt of a cell that has ended. The
    /// next call returns false.
    bool forget_interrupt();

 private:
    std::uint64_t last_id_ = 0;
    std::optional<std::uint64_t> id_;  // of the request that runs
    RequestRules rules_;
    std::optional<nlohmann::json> done_;
    bool awaits_answer_ = false;
    bool interrupted_ = false;  // the driver may not have seen it yet
};

}  // namespace cellkeep::kernels::driver
