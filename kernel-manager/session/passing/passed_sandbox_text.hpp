// SPDX-License-Identifier: Apache-2.0
//
// A passed sandbox as a value, in which descriptors are their numbers; a part of passed_text.cpp.
// What is read is checked, and json::exception is thrown for another form.
#pragma once

#include "protocol/support/unique_fd.hpp"
#include "sandbox/server/passed_sandbox.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <vector>

namespace cellkeep::session {

/// Takes an open descriptor, which is closed on exec from then on.
UniqueFd take_fd(const nlohmann::json& text, const char* name);
/// One that may be missing: -1.
UniqueFd take_fd_if_any(const nlohmann::json& text, const char* name);
/// The number of a session.
std::uint32_t read_slot(const nlohmann::json& text);

nlohmann::json write_sandbox(const sandbox::PassedSandbox& sandbox);
sandbox::PassedSandbox read_sandbox(const nlohmann::json& text);
void add_descriptors(const sandbox::PassedSandbox& sandbox, std::vector<int>& all);

}  // namespace cellkeep::session
