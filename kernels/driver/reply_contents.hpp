// SPDX-License-Identifier: Apache-2.0
//
// The contents of Jupyter's replies (Jupyter messaging 5.5), made from what a driver answers.
// Functions of values: they ask nothing and keep nothing.
#pragma once

#include "kernels/common/interpreter.hpp"
#include "kernels/driver/event_fields.hpp"
#include "protocol/kernel_json.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>

namespace cellkeep::kernels::driver {

/// done: the answer of a request; nullopt if the driver is at fault.
using Done = std::optional<nlohmann::json>;

/// cursor in code points, clamped to the code. xeus uses -1 for the end of the code.
nlohmann::json clamp_cursor(const std::string& code, int cursor);

Reply make_execute_reply(const nlohmann::json& done);
/// The reply of an execution whose driver is at fault.
Reply make_fault_reply(const CodeFault& fault);
/// cursor: where the request was; an answer without matches names it as start and end.
nlohmann::json make_complete_reply(const Done& done, const nlohmann::json& cursor);
nlohmann::json make_inspect_reply(const Done& done);
nlohmann::json make_is_complete_reply(const Done& done);
nlohmann::json make_kernel_info(const protocol::KernelJson& about, const nlohmann::json& ready);

/// Whether the driver answers messages of this type itself.
bool answers_message(const protocol::KernelJson& about, std::string_view type);

}  // namespace cellkeep::kernels::driver
