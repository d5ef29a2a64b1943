// SPDX-License-Identifier: Apache-2.0
//
// What an execution showed, parsed, for tests that look into it.
#pragma once

#include "kernel-manager/execution/execution.hpp"
#include "protocol/json.hpp"

#include <nlohmann/json.hpp>

namespace cellkeep::test {

/// The MIME bundle of the last expression.
inline nlohmann::json result_of(const session::ExecutionResult& result) {
    return protocol::parse_json(result.result.text(), "result").value();
}

inline nlohmann::json outputs_of(const session::ExecutionResult& result) {
    return protocol::parse_json(session::outputs_text(result.outputs).join(), "outputs").value();
}

inline nlohmann::json displays_of(const session::ExecutionResult& result) {
    return protocol::parse_json(session::displays_text(result.outputs).join(), "displays").value();
}

}  // namespace cellkeep::test
