// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/exec/process_event.hpp"

#include "kernel-manager/cli/json_field.hpp"
#include "protocol/base64.hpp"
#include "protocol/json.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>

namespace cellkeep::cli {

namespace {

/// The largest that a number of JSON has for certain (RFC 8259, section 6).
constexpr double kPlaceMax = 9'007'199'254'740'991.0;

int signal_number(const std::string& name) {
    for (int number = 1; number <= SIGSYS; ++number) {
        const char* known = ::sigabbrev_np(number);
        if (known != nullptr && name == std::string("SIG") + known) {
            return number;
        }
    }
    return 0;
}

void read_end(const nlohmann::json& process, ProcessEvent& event) {
    const nlohmann::json end =
        process.is_object() && process.contains("end") ? process["end"] : nlohmann::json::object();
    const std::string reason = text_field(end, "reason");
    if (reason == "signal") {
        event.exit_code = kSignalExitBase + signal_number(text_field(end, "signal"));
    } else if (reason == "session_ended") {
        event.err = "cellkeep: the session has ended\n";
        event.exit_code = kSignalExitBase + SIGKILL;
    } else {
        if (const std::string error = text_field(end, "error"); !error.empty()) {
            event.err = "cellkeep: " + error + "\n";
        }
        event.exit_code = static_cast<int>(number_field(end, "exit_code", 1));
    }
}

}  // namespace

Result<ProcessEvent> read_process_event(std::string_view text) {
    BOOST_OUTCOME_TRY(const auto body, protocol::parse_json_object(text, "the server's event"));
    ProcessEvent event;
    const std::string type = text_field(body, "type");
    // Places are below 2^53: no command writes that much.
    event.place =
        static_cast<std::uint64_t>(std::clamp(number_field(body, "seq", 0), 0.0, kPlaceMax));
    if (type == "stdout" || type == "stderr") {
        std::string bytes = text_field(body, "text");
        if (body.contains("base64")) {
            bytes = protocol::decode_base64(text_field(body, "base64")).value_or("");
        }
        (type == "stdout" ? event.out : event.err) = std::move(bytes);
    } else if (type == "gap") {
        event.err = "cellkeep: some output is no longer there\n";
    } else if (type == "refused") {
        event.err = "cellkeep: " + text_field(body, "detail") + "\n";
    } else if (type == "exited") {
        read_end(body.contains("process") ? body["process"] : nlohmann::json(), event);
    }
    return event;
}

}  // namespace cellkeep::cli
