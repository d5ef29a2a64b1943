// SPDX-License-Identifier: Apache-2.0
//
// A kernel on its way from one program in the server's process to another, but for its interpreter,
// whose descriptors pass beside. Pure functions; what reads throws json::exception for another
// form.
#pragma once

#include "kernel-manager/kernel/interpreter.hpp"
#include "kernel-manager/session/passing/passed_run.hpp"
#include "kernel-manager/session/supervised_kernel.hpp"

#include <nlohmann/json.hpp>

namespace cellkeep::session {

nlohmann::json write_kernel(const PassedKernel& kernel);
PassedKernel read_kernel(
    const nlohmann::json& text, PassedInterpreter interpreter, const FindExecution& find);

}  // namespace cellkeep::session
