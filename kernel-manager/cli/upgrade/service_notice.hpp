// SPDX-License-Identifier: Apache-2.0
//
// What the server tells the service manager that started it (sd_notify(3)): one datagram to the
// socket that NOTIFY_SOCKET names. Without a manager nothing happens.
#pragma once

#include "protocol/support/result.hpp"

#include <chrono>
#include <string>
#include <string_view>

namespace cellkeep::cli {

/// READY=1, with a sentence for people.
std::string ready_notice(std::string_view status);
/// RELOADING=1; READY=1 of the other program follows. now: of the monotonic clock.
std::string reloading_notice(std::chrono::steady_clock::time_point now);
/// STOPPING=1.
std::string stopping_notice();

/// kUnavailable if the manager does not take it.
Status notify_manager(const std::string& notice);

}  // namespace cellkeep::cli
