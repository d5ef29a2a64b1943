// SPDX-License-Identifier: Apache-2.0
//
// One request after another to the driver, and the events that come meanwhile (README.md). Waits
// for the driver, the kernel link and SIGINT in one poll(2), without a time limit while nothing
// runs. One thread.
#pragma once

#include "kernels/common/interpreter.hpp"
#include "kernels/driver/driver_process.hpp"
#include "kernels/driver/interrupt_signals.hpp"
#include "kernels/driver/running_request.hpp"
#include "kernels/driver/tool_question.hpp"
#include "protocol/kernel_json.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::kernels::driver {

/// How long a driver may take until it is ready.
inline constexpr std::chrono::milliseconds kReadyMax{50'000};
/// How long it may take to answer a request that cannot be interrupted.
inline constexpr std::chrono::milliseconds kAnswerMax{60'000};
/// A driver that has closed its events has this long to end.
inline constexpr std::chrono::milliseconds kClosedGrace{1000};

struct ConversationRules {
    std::string language;  // for errors
    protocol::InterruptBy interrupt = protocol::InterruptBy::kSignal;
    std::chrono::milliseconds ready_max = kReadyMax;
    std::chrono::milliseconds answer_max = kAnswerMax;
};

class DriverConversation {
 public:
    /// Takes an event that is not ready, done or a question. An error is a fault of the driver.
    using TakeEvent = std::function<Status(const nlohmann::json& event)>;

    DriverConversation(
        const KernelParts& parts,
        DriverProcess process,
        InterruptSignals signals,
        ConversationRules rules,
        TakeEvent take_event);

    /// Blocks until the ready event, at most ready_max.
    Status wait_until_ready();
    /// The ready event; null before it.
    const nlohmann::json& ready() const { return ready_; }

    /// Sends the request with an id, takes events until its done event, and returns that. Returns
    /// nullopt if the driver is at fault. Ends this process as the driver ends.
    std::optional<nlohmann::json> ask(nlohmann::json request, RequestRules rules = {});

    /// Blocks until fd is readable or the inbox holds a message. Takes events meanwhile.
    Status wait_readable(int fd);

    /// Why the driver was killed; nullopt while it works.
    const std::optional<Error>& fault() const { return fault_; }

    /// No more requests: lets the driver end, and kills it after kEndGrace.
    void end();

 private:
    using Clock = std::chrono::steady_clock;
    /// What ends a wait, beside the driver's events and its end.
    struct Wanted {
        int link = -1;  // readable
        std::optional<Clock::time_point> deadline = std::nullopt;
    };
    enum class Woken { kLink, kDeadline, kOther };

    void settle_interrupt();
    Woken wait(const Wanted& wanted);
    void read_events();
    void take_lines();
    void note_closed();
    Status take(nlohmann::json event);
    Status take_question(const nlohmann::json& event);
    Status take_tool_question(const nlohmann::json& event);
    void answer_question();
    void answer_input();
    void answer_tool();
    void take_interrupts();
    void take_end();
    void read_what_is_left();
    void set_fault(std::string_view what);

    KernelParts parts_;
    DriverProcess process_;
    InterruptSignals signals_;
    ConversationRules rules_;
    TakeEvent take_event_;
    nlohmann::json ready_;
    RunningRequest request_;
    std::optional<ToolQuestion> asked_tool_;  // else the open question is one for input
    std::optional<Error> fault_;
    bool ended_ = false;
};

}  // namespace cellkeep::kernels::driver
