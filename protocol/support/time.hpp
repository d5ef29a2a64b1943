// SPDX-License-Identifier: Apache-2.0
//
// Wall-clock time as text. Durations and deadlines use std::chrono::steady_clock directly.
#pragma once

#include <chrono>
#include <string>

namespace cellkeep {

/// ISO 8601 in UTC with six fraction digits and Z: "2026-11-21T20:59:40.000123Z". The fraction and
/// the Z are always there: Jupyter gateways parse with "%Y-%m-%dT%H:%M:%S.%fZ".
std::string to_iso8601(std::chrono::system_clock::time_point time);

}  // namespace cellkeep
