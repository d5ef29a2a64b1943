// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/request_rules.hpp"

#include "protocol/internal_request.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

namespace cellkeep::kernels {

namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 7> kXeusShellRequests{
    "execute_request",
    "complete_request",
    "inspect_request",
    "history_request",
    "is_complete_request",
    "kernel_info_request",
    "shutdown_request"};
constexpr std::array<std::string_view, 3> kXeusControlRequests{
    "kernel_info_request", "shutdown_request", "interrupt_request"};
constexpr std::array<std::string_view, 3> kCommMessages{"comm_open", "comm_msg", "comm_close"};

struct Field {
    const char* name;
    json fallback;  // Its type is the field's type; null: required text.
};

/// Jupyter messaging specification 5.5, "Messages on the shell (ROUTER/DEALER) channel".
const std::vector<Field>& fields_of(std::string_view type) {
    const bool no = false;
    static const std::vector<Field> execute{
        {"code", nullptr},
        {"silent", no},
        {"store_history", true},
        {"user_expressions", json::object()},
        {"allow_stdin", true},
        {"stop_on_error", true}};
    static const std::vector<Field> complete{{"code", nullptr}, {"cursor_pos", -1}};
    static const std::vector<Field> inspect{
        {"code", nullptr}, {"cursor_pos", -1}, {"detail_level", 0}};
    static const std::vector<Field> is_complete{{"code", nullptr}};
    // n: the specification gives no default; IPython's is 10. stop 0 stands for "to the end".
    static const std::vector<Field> history{
        {"hist_access_type", nullptr},
        {"output", no},
        {"raw", true},
        {"session", 0},
        {"start", 1},
        {"stop", 0},
        {"n", 10},
        {"pattern", "*"},
        {"unique", no}};
    static const std::vector<Field> shutdown{{"restart", no}};
    static const std::vector<Field> none;
    if (type == "execute_request") {
        return execute;
    }
    if (type == "complete_request") {
        return complete;
    }
    if (type == "inspect_request") {
        return inspect;
    }
    if (type == "is_complete_request") {
        return is_complete;
    }
    if (type == "history_request") {
        return history;
    }
    return type == "shutdown_request" ? shutdown : none;
}

bool has_type_of(const json& value, const json& fallback) {
    if (fallback.is_null()) {
        return value.is_string();
    }
    if (fallback.is_number()) {
        return value.is_number_integer();
    }
    return value.type() == fallback.type();
}

/// xeus reads integers as int.
void clamp_integer(json& value) {
    if (!value.is_number_integer()) {
        return;
    }
    constexpr std::int64_t kMax = std::numeric_limits<int>::max();
    if (value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t{kMax}) {
        value = kMax;
    } else {
        value = std::clamp<std::int64_t>(value.get<std::int64_t>(), -kMax, kMax);
    }
}

template <std::size_t kSize>
bool contains(const std::array<std::string_view, kSize>& list, std::string_view text) {
    return std::find(list.begin(), list.end(), text) != list.end();
}

}  // namespace

RequestKind find_shell_request(std::string_view type) {
    if (contains(kXeusShellRequests, type)) {
        return RequestKind::kReplied;
    }
    if (contains(kCommMessages, type)) {
        return RequestKind::kComm;
    }
    return type == "comm_info_request" ? RequestKind::kCommInfo : RequestKind::kUnknown;
}

RequestKind find_control_request(std::string_view type) {
    if (type == protocol::kAdoptRequest) {
        return RequestKind::kAdopt;
    }
    if (type == protocol::kCheckpointRequest) {
        return RequestKind::kCheckpoint;
    }
    if (type == kDebugRequest) {
        return RequestKind::kDebug;
    }
    return contains(kXeusControlRequests, type) ? RequestKind::kReplied : RequestKind::kUnknown;
}

std::string reply_type(std::string_view request_type) {
    const std::size_t underscore = request_type.rfind('_');
    return std::string(request_type.substr(0, underscore)) + "_reply";
}

Status complete_content(std::string_view request_type, json& content) {
    for (const Field& field : fields_of(request_type)) {
        const auto found = content.find(field.name);
        const bool absent = found == content.end() || found->is_null();
        if (absent && field.fallback.is_null()) {
            return Error(
                ErrorCode::kInvalidArgument,
                std::string(request_type) + ": the field " + field.name + " is missing");
        }
        if (absent) {
            content[field.name] = field.fallback;
        } else if (!has_type_of(*found, field.fallback)) {
            return Error(
                ErrorCode::kInvalidArgument,
                std::string(request_type) + ": the field " + field.name + " has a wrong type");
        } else {
            clamp_integer(*found);
        }
    }
    return ok();
}

}  // namespace cellkeep::kernels
