// SPDX-License-Identifier: Apache-2.0
//
// The kernel of every language that is a folder: hands requests to the driver and its events to
// clients (README.md). One thread; it waits for the link, the driver and SIGINT in one poll(2),
// without a time limit while nothing runs.
#pragma once

#include "kernels/common/interpreter.hpp"
#include "kernels/driver/driver_process.hpp"
#include "kernels/driver/event_publisher.hpp"
#include "kernels/driver/session_history.hpp"
#include "protocol/kernel_json.hpp"
#include "protocol/support/unique_fd.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::kernels::driver {

/// How long a driver may take until it is ready.
inline constexpr std::chrono::milliseconds kReadyMax{30'000};
/// How long it may take to complete, inspect, or tell whether code is complete.
inline constexpr std::chrono::milliseconds kAnswerMax{60'000};
/// A driver that has closed its events has this long to end.
inline constexpr std::chrono::milliseconds kClosedGrace{1000};

/// What to start, from the program's arguments.
struct Options {
    std::string folder;                         // holds kernel.json
    std::map<std::string, std::string> values;  // of placeholders
    std::chrono::milliseconds ready_max = kReadyMax;
    std::chrono::milliseconds answer_max = kAnswerMax;
};

class DriverInterpreter final : public Interpreter {
 public:
    /// Reads kernel.json, starts the driver and waits until it is ready. kInvalidArgument: the
    /// folder is none of a language.
    static Result<std::unique_ptr<Interpreter>> create(
        const KernelParts& parts, const Options& options);

    Status wait_readable(int fd) override;
    nlohmann::json comm_info(std::string_view target_name) override;
    void receive_comm(const protocol::Message& message) override;
    nlohmann::json history(const nlohmann::json& request) override;
    nlohmann::json adopt(const nlohmann::json& request) override;
    void receive_debug(const protocol::Message& message) override;
    void end() override;

 protected:
    Reply execute(const ExecuteRequest& request, int count) override;

 private:
    using Clock = std::chrono::steady_clock;
    using Time = std::optional<Clock::time_point>;
    /// What ends the wait beside what is always looked at: the driver's events and its end.
    struct Wanted {
        int link = -1;  // readable
        Time deadline = std::nullopt;
    };
    enum class Woken { kLink, kDeadline, kOther };
    enum class Interruptible { kNo, kYes };

    DriverInterpreter(
        const KernelParts& parts,
        protocol::KernelJson about,
        Options options,
        DriverProcess process,
        UniqueFd signals);

    nlohmann::json complete_request_impl(const std::string& code, int cursor_pos) override;
    nlohmann::json inspect_request_impl(
        const std::string& code, int cursor_pos, int detail_level) override;
    nlohmann::json is_complete_request_impl(const std::string& code) override;
    nlohmann::json kernel_info_request_impl() override;
    void shutdown_request_impl() override { end(); }

    // --- one request of the driver's
    /// Sends it with an id and works on events until it is done. Nothing: fault_ says why.
    std::optional<nlohmann::json> ask(nlohmann::json request, Interruptible interruptible);
    std::optional<nlohmann::json> ask_message(
        const protocol::Message& message, const nlohmann::json& content);
    void settle_interrupt();
    bool answers(std::string_view type) const;

    // --- what comes
    Status wait_until_ready();
    Woken wait(const Wanted& wanted);
    void read_events();
    void take_lines();
    void note_closed();
    Status take_event(nlohmann::json event);
    Status take_ready(const nlohmann::json& event);
    Status take_done(nlohmann::json event);
    Status take_input(const nlohmann::json& event);
    void answer_input();
    void take_interrupts();
    void take_end();
    [[noreturn]] void mirror_end();
    void set_fault(std::string_view what);
    Reply fault_reply();

    protocol::KernelJson about_;
    Options options_;
    DriverProcess process_;
    UniqueFd signals_;  // signalfd(2) of SIGINT, which is blocked
    EventPublisher publisher_;
    SessionHistory history_;

    nlohmann::json ready_;  // the event; null until it came
    std::uint64_t last_id_ = 0;
    std::optional<std::uint64_t> running_;  // the request that the driver works on
    std::optional<nlohmann::json> done_;    // its answer
    bool interruptible_ = false;
    bool interrupted_ = false;  // and the driver may not have seen it yet
    bool allow_stdin_ = false;
    bool awaits_input_ = false;
    bool keeps_output_ = false;  // the result goes to the history
    std::optional<Error> fault_;
    bool ended_ = false;
};

}  // namespace cellkeep::kernels::driver
