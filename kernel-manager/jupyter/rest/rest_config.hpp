// SPDX-License-Identifier: Apache-2.0
//
// What an operator sets for the Jupyter Server REST API. A value.
#pragma once

#include "kernel-manager/jupyter/rest/rest_kernelspecs.hpp"
#include "kernel-manager/session/session_options.hpp"
#include "protocol/limits.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace cellkeep::jupyter {

struct RestConfig {
    /// Of addresses in bodies; starts and ends with a slash. (Location is http::Application's.)
    std::string base_url = "/";
    std::string default_kernel_name = kDefaultKernelName;
    /// Variables of a client that its kernel gets besides KERNEL_*.
    std::vector<std::string> allowed_envs;
    /// Of kernels that are started here, within the service's ceilings.
    session::SessionLimits limits;
    session::CullRules cull;
    /// Documents that have a kernel; tests set fewer.
    std::size_t sessions_max = limits::kJupyterSessionsMax;
    std::function<void(const std::string& line)> log;
};

}  // namespace cellkeep::jupyter
