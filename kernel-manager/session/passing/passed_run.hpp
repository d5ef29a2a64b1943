// SPDX-License-Identifier: Apache-2.0
//
// An execution whose code runs, or that waits, written down for another program in the server's
// process and read again, but for what is known of every execution (passed_execution.hpp). Texts in
// it are the bytes that they are: CBOR can be made of it. Pure functions; what reads throws
// json::exception for another form.
#pragma once

#include "kernel-manager/kernel/current_run.hpp"

#include <nlohmann/json.hpp>

#include <functional>
#include <memory>
#include <string>

namespace cellkeep::session {

/// An execution by its id; null: there is none.
using FindExecution = std::function<std::shared_ptr<Execution>(const std::string& id)>;

nlohmann::json write_run(const PassedRun& run);
PassedRun read_run(const nlohmann::json& text, const FindExecution& find);

nlohmann::json write_waiting(const PassedRequest& request);
PassedRequest read_waiting(const nlohmann::json& text, const FindExecution& find);

}  // namespace cellkeep::session
