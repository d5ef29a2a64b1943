// SPDX-License-Identifier: Apache-2.0
//
// The session service's configuration as every command that runs sessions needs it.
#pragma once

#include "kernel-manager/session/service.hpp"
#include "protocol/support/result.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace cellkeep::cli {

/// kInvalidArgument if a control name is unknown; kUnavailable if the installation is incomplete.
Result<session::ServiceConfig> make_service_config(
    std::size_t sessions_max, const std::vector<std::string>& allow_degraded);

}  // namespace cellkeep::cli
