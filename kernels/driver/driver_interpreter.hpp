// SPDX-License-Identifier: Apache-2.0
//
// The kernel of every language that is a folder: hands requests to the driver and its events to
// clients (README.md). One thread.
#pragma once

#include "kernels/common/interpreter.hpp"
#include "kernels/driver/driver_conversation.hpp"
#include "kernels/driver/event_publisher.hpp"
#include "kernels/driver/session_history.hpp"
#include "protocol/kernel_json.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::kernels::driver {

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
    /// folder is not that of a language.
    static Result<std::unique_ptr<Interpreter>> create(
        const KernelParts& parts, const Options& options);

    Status wait_readable(int fd) override { return conversation_.wait_readable(fd); }
    nlohmann::json comm_info(std::string_view target_name) override;
    void receive_comm(const protocol::Message& message) override;
    nlohmann::json history(const nlohmann::json& request) override;
    nlohmann::json adopt(const nlohmann::json& request) override;
    void receive_debug(const protocol::Message& message) override;
    void end() override { conversation_.end(); }

 protected:
    Reply execute(const ExecuteRequest& request, int count) override;

 private:
    DriverInterpreter(
        const KernelParts& parts,
        protocol::KernelJson about,
        const Options& options,
        DriverProcess process,
        InterruptSignals signals);

    nlohmann::json complete_request_impl(const std::string& code, int cursor_pos) override;
    nlohmann::json inspect_request_impl(
        const std::string& code, int cursor_pos, int detail_level) override;
    nlohmann::json is_complete_request_impl(const std::string& code) override;
    nlohmann::json kernel_info_request_impl() override;
    void shutdown_request_impl() override { end(); }

    Status take_event(const nlohmann::json& event);
    std::optional<nlohmann::json> ask_message(
        const protocol::Message& message, const nlohmann::json& content);

    protocol::KernelJson about_;
    EventPublisher publisher_;
    SessionHistory history_;
    bool keeps_output_ = false;  // the running cell's result goes to the history
    DriverConversation conversation_;
};

}  // namespace cellkeep::kernels::driver
