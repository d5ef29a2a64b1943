// SPDX-License-Identifier: Apache-2.0
//
// Passed sessions as one value without pointers, in which descriptors are their numbers: what one
// program writes before it becomes another, and that one reads.
#pragma once

#include "kernel-manager/session/passing/passed_sessions.hpp"
#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <vector>

namespace cellkeep::session {

/// Texts in it are the bytes that they are: no JSON text can be made of it, CBOR can. The
/// descriptors stay the sessions'.
nlohmann::json write_passed(const PassedSessions& passed);
/// The descriptors that the value names.
std::vector<int> descriptors_of(const PassedSessions& passed);
/// Takes the descriptors, which are closed on exec from then on. kProtocol for another form, or a
/// descriptor that is not open.
Result<PassedSessions> read_passed(const nlohmann::json& value);

}  // namespace cellkeep::session
