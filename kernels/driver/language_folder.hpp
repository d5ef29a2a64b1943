// SPDX-License-Identifier: Apache-2.0
//
// The folder of a language: its kernel.json, and the command of its driver.
#pragma once

#include "kernels/driver/driver_process.hpp"
#include "protocol/kernel_json.hpp"
#include "protocol/support/result.hpp"

#include <map>
#include <string>

namespace cellkeep::kernels::driver {

/// kInvalidArgument names the file and what is wrong with it.
Result<protocol::KernelJson> read_kernel_json(const std::string& folder);

/// values: of the placeholders in argv and env, beside {folder}. kInvalidArgument names a
/// placeholder without a value.
Result<Command> make_command(
    const protocol::KernelJson& about,
    const std::string& folder,
    std::map<std::string, std::string> values);

}  // namespace cellkeep::kernels::driver
