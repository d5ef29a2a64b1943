// SPDX-License-Identifier: Apache-2.0
//
// Results of executions and their outputs, written down for another program in the server's process
// and read again. Texts in it are the bytes that they are: no JSON text can be made of it, CBOR
// can. Pure functions; what reads throws nlohmann::json::exception for another form.
#pragma once

#include "kernel-manager/execution/execution.hpp"
#include "kernel-manager/execution/notebook_output.hpp"

#include <nlohmann/json.hpp>

namespace cellkeep::session {

nlohmann::json write_output(const NotebookOutput& output);
NotebookOutput read_output(const nlohmann::json& text);

nlohmann::json write_result(const ExecutionResult& result);
ExecutionResult read_result(const nlohmann::json& text);

}  // namespace cellkeep::session
