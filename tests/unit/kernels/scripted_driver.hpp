// SPDX-License-Identifier: Apache-2.0
//
// A conversation with a driver that is a few lines of sh.
#pragma once

#include "kernels/driver/driver_conversation.hpp"
#include "tests/unit/kernels/link_pair.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <vector>

namespace cellkeep::kernels::driver {

inline constexpr const char* kReady = R"(echo '{"event":"ready","version":"1"}' >&4; )";
inline constexpr const char* kWaitForEnd = "while read -r line <&3; do :; done";

/// A conversation with a shell script as the driver.
struct ScriptedDriver {
    explicit ScriptedDriver(
        const std::string& script, ConversationRules rules = {.language = "toy"})
        : conversation(
              KernelParts{pair.kernel, pair.inbox, pair.outbox, output},
              start(script),
              block_interrupts(),
              std::move(rules),
              [this](const nlohmann::json& event) { return take_event(event); }) {}

    static DriverProcess start(const std::string& script) {
        auto process = DriverProcess::start({{"sh", "-c", script}, {}});
        REQUIRE(process);
        return std::move(process.value());
    }

    static InterruptSignals block_interrupts() {
        auto signals = InterruptSignals::block();
        REQUIRE(signals);
        (void)signals.value().drain();
        return std::move(signals.value());
    }

    Status take_event(const nlohmann::json& event) {
        events.push_back(event);
        if (event["event"] == "wrong") {
            return Error(ErrorCode::kProtocol, "a wrong event");
        }
        return ok();
    }

    /// What the error of a driver at fault says after its beginning.
    std::string fault() const {
        const std::string beginning = "the toy driver broke down: ";
        const std::string text = conversation.fault() ? conversation.fault()->message() : "";
        return text.rfind(beginning, 0) == 0 ? text.substr(beginning.size()) : text;
    }

    LinkPair pair;
    OutputBuffer output{pair.outbox};
    std::vector<nlohmann::json> events;
    DriverConversation conversation;
};

inline bool begins(const std::string& text, const std::string& with) {
    return text.rfind(with, 0) == 0;
}

}  // namespace cellkeep::kernels::driver
